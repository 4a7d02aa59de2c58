"""The door to tree-sitter: a shell command as its simple commands, or the reason why it cannot be judged.

What the parser and bash could read differently is refused, as is what bash evaluates beyond its syntax, and
everything whose commands only a running shell would know.
"""

import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.redact import make_visible

if TYPE_CHECKING:
    from tree_sitter import Node

UNKNOWN_TEXT = "\0"
"""Stands for text that only the shell will know; a command with this character in it is refused."""
_PIECE = regex(r"'([^']*)'|\\(.|\n)|(.)", re.DOTALL)


class TooComplex(Exception):
    """A command that cannot be judged; says why, for people and models."""


class ShellWord(Record):
    text: str
    """Its value, with UNKNOWN_TEXT for each expansion of the shell."""
    loose: bool = False
    """True when it may become another flag, or several words."""

    @property
    def is_known(self) -> bool:
        return UNKNOWN_TEXT not in self.text


class Redirection(Record):
    operator: str
    target: ShellWord
    source: str

    @property
    def writes(self) -> bool:
        is_copy = self.operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", self.target.text)
        return ">" in self.operator and not is_copy and self.target.text != "/dev/null"


class SimpleCommand(Record):
    """One simple command: its words, what is assigned for it, and how it was written."""

    words: tuple[ShellWord, ...]
    source: str
    assigned: tuple[tuple[str, ShellWord], ...] = ()
    is_opened: bool = False
    """True when it only runs others, which are judged in its place."""


class ShellScript(Record):
    """The actions that a shell would take for a command."""

    commands: tuple[SimpleCommand, ...]
    redirections: tuple[Redirection, ...] = ()
    source: str = ""
    document: str = ""
    """The text of its here-document, unless the shell changes it."""


def unquote(text: str) -> ShellWord:
    """Return the value of a word that stands without double quotes. Raises TooComplex."""
    value = ""
    for quoted, escaped, plain in _PIECE.findall(text):
        if plain in ("`", "$") and text != "$":
            raise TooComplex("an expansion is not clear")
        is_home = plain == "~" and (not value or value[-1] in "=:")
        value += (
            UNKNOWN_TEXT if is_home or (plain and plain in "*?[") else quoted or escaped.strip("\n") or plain
        )
    if re.search(r"(?<!\\)\{[^}]*(?:,|\.\.)", text) and "'" not in text:
        return ShellWord(text=UNKNOWN_TEXT, loose=True)
    return ShellWord(text=value, loose=is_open_ended(value))


def is_open_ended(text: str) -> bool:
    """Return whether a text whose rest is not known may turn out to be a flag."""
    return text.startswith(UNKNOWN_TEXT) or (text.startswith("-") and UNKNOWN_TEXT in text)


def join_words(words: tuple[ShellWord, ...]) -> str:
    """Return words as one text; a word with white space stays in quotes, so that it cannot pass for two."""
    texts = (word.text for word in words)
    return " ".join(shlex.quote(text) if not text or re.search(r"\s", text) else text for text in texts)


MAX_COMMAND_CHARS = 10_000
MAX_COMMANDS = 50
_MAX_DEPTH = 40
_MAX_PIPES = 1_000
"""The parser needs seconds for more."""
_STRUCTURE = frozenset(
    {
        *("program", "list", "pipeline", "redirected_statement", "subshell", "compound_statement"),
        *("if_statement", "elif_clause", "else_clause", "for_statement", "while_statement", "do_group"),
        *("case_statement", "case_item", "negated_command", "function_definition", "variable_assignments"),
        *("command_substitution", "process_substitution", "last_case_item"),
    }
)
"""Nodes that only hold others."""
_LITERAL = frozenset(
    {"word", "number", "raw_string", "extglob_pattern", "variable_name", "special_variable_name"}
)
_WORDS = _LITERAL | {
    *("string", "concatenation", "simple_expansion", "expansion", "command_substitution", "test_operator"),
    *("process_substitution", "ansi_c_string", "translated_string"),
    *("arithmetic_expansion", "brace_expression"),
}
_PLAIN_EXPANSION = regex(
    r"\$\{(?:#?\w+|\w+(?::?[-+?=]|%%?|##?|//?|\^\^?|,,?)[^`$\\]*|\w+:\d+(?::\d+)?|\w+\[[@*\d]+\])\}"
)
_DASH = regex(rb"(?<=[ \t])-(?=[ \t]*<<)")
"""The parser loses this word, unless it is escaped."""
_FIXED_TEXT = regex(
    r"\$\(\s*cat\s+<<\s*(?:'(\w+)'|\"(\w+)\"|\\(\w+))[ \t]*\n(?P<text>(?:.*\n)?)(?P<end>\w+)\s*\)", re.DOTALL
)
"""A substitution that gives a quoted here-document, which the shell leaves as it is written."""
_REDEFINE = frozenset({".", "source", "eval", "enable", "hash", "export", "declare", "typeset", "shopt"})
"""Commands after which `cat` may be another program."""
_NUMERIC = regex(r"-(?:eq|ne|lt|le|gt|ge)")


def parse_command(command: str) -> ShellScript:
    """Return the simple commands of a shell command, those of substitutions too. Raises TooComplex."""
    if len(command) > MAX_COMMAND_CHARS:
        raise TooComplex(f"it has more than {MAX_COMMAND_CHARS:,} characters")
    if "\r" in command or make_visible(command) != command:
        raise TooComplex("it holds control or invisible characters")
    if command.count("|") > _MAX_PIPES:
        raise TooComplex("it has too many commands")
    reader = _Reader(_DASH.sub(rb"\\-", command.encode()))
    reader.read()
    return ShellScript(
        commands=tuple(reader.commands),
        redirections=tuple(reader.redirections),
        source=command.strip(),
        document=reader.document,
    )


class _Reader:
    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.commands: list[SimpleCommand] = []
        self.redirections: list[Redirection] = []
        self.document = ""
        self.fixed: list[Node] = []
        """The substitutions whose text is known; the parser cannot mistake where these end."""

    def read(self) -> None:
        import tree_sitter_bash  # noqa: PLC0415  # loaded only where a command is judged
        from tree_sitter import Language, Parser  # noqa: PLC0415

        top = Parser(Language(tree_sitter_bash.language())).parse(self.raw).root_node
        if top.has_error:
            raise TooComplex("it cannot be parsed")
        if _BLANK.fullmatch(self.raw[: top.start_byte]) is None or top.end_byte != len(self.raw):
            raise TooComplex("it cannot be parsed to its end")
        nodes = [node for node in _walk_nodes(top) if node.type == "command_substitution"]
        self.fixed = [node for node in nodes if _find_fixed_text(self._text(node)) is not None]
        self._walk(top, 0)
        _require_plain_numbers(top)

    def _text(self, node: "Node") -> str:
        return (node.text or b"").decode()

    def _walk(self, node: "Node", depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise TooComplex("it is nested too deeply")
        if len(self.commands) > MAX_COMMANDS:
            raise TooComplex(f"it has more than {MAX_COMMANDS} commands")
        if not node.is_named or node.type == "comment":
            _require_word_start(node, self.raw)
        elif node.type in _STRUCTURE:
            _require_no_gaps(node)
            if node.type == "for_statement":
                self._assign_loop(node)
            for child in node.children:
                self._walk(child, depth + 1)
        elif node.type in _WORDS:
            self._word(node, depth)
        else:
            self._leaf(node, depth)

    def _leaf(self, node: "Node", depth: int) -> None:
        match node.type:
            case "command" | "declaration_command" | "unset_command":
                self._command(node, depth)
            case "test_command":
                self._test(node, depth)
            case "variable_assignment":
                self.commands.append(
                    SimpleCommand(
                        words=(), source=self._text(node), assigned=(self._read_assignment(node, depth),)
                    )
                )
            case "file_redirect" | "herestring_redirect":
                self._redirection(node, depth)
            case "heredoc_redirect":
                self._heredoc(node, depth)
            case "binary_expression" | "unary_expression" | "postfix_expression":
                pass  # of (( )), which _require_plain_numbers examines
            case kind:
                raise TooComplex(f"it holds {kind}, which is not judged")

    def _command(self, node: "Node", depth: int) -> None:
        _require_no_gaps(node)
        words: list[ShellWord] = []
        assigned: list[tuple[str, ShellWord]] = []
        for child in node.children:
            if child.type == "variable_assignment":
                name, value = self._read_assignment(child, depth)
                assigned.append((name, value))
                if words:  # an argument of export and its like
                    words.append(ShellWord(text=f"{name}={value.text}", loose=value.loose))
            elif child.type in ("file_redirect", "herestring_redirect"):
                self._redirection(child, depth)
            elif child.type == "command_name":
                words.append(self._word(child.children[0], depth))
            elif child.type in _WORDS or node.type != "command":
                words.append(self._word(child, depth))
            else:
                raise TooComplex(f"{child.type} in a command is not judged")
        self.commands.append(
            SimpleCommand(words=tuple(words), source=self._text(node), assigned=tuple(assigned))
        )

    def _test(self, node: "Node", depth: int) -> None:
        opening = self._text(node.children[0])
        if opening == "((":
            return
        for part in _walk_nodes(node):
            text = self._text(part)
            if part.type == "test_operator" and (
                text in ("-v", "-R") or (opening == "[[" and _NUMERIC.fullmatch(text))
            ):
                raise TooComplex(f"{text} in {opening} evaluates its operands")
            if part.type in _WORDS and (part.parent is None or part.parent.type not in _WORDS):
                self._word(part, depth)
        self.commands.append(SimpleCommand(words=(ShellWord(text="["),), source=self._text(node)))

    def _read_assignment(self, node: "Node", depth: int) -> tuple[str, ShellWord]:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is None or name.type != "variable_name":
            raise TooComplex("an index is evaluated")
        if value is None:
            return self._text(name), ShellWord(text="")
        if value.type == "array":
            for child in value.children:
                self._walk(child, depth + 1)
            return self._text(name), ShellWord(text=UNKNOWN_TEXT, loose=True)
        return self._text(name), self._word(value, depth)

    def _assign_loop(self, node: "Node") -> None:
        variable = node.child_by_field_name("variable")
        if variable is None or self._text(node.children[0]) != "for":
            raise TooComplex("a loop of this kind is not judged")
        name, anything = self._text(variable), ShellWord(text=UNKNOWN_TEXT, loose=True)
        self.commands.append(SimpleCommand(words=(), source=f"for {name}", assigned=((name, anything),)))

    def _redirection(self, node: "Node", depth: int) -> None:
        _require_no_gaps(node)
        targets = [child for child in node.children if child.type in _WORDS]
        operator = next((self._text(child) for child in node.children if not child.is_named), "")
        if len(targets) != 1 or not operator:
            raise TooComplex("a redirection is not clear")
        target = self._word(targets[0], depth)
        self.redirections.append(Redirection(operator=operator, target=target, source=self._text(node)))
        if operator == "<<<" and target.is_known:
            self.document = target.text

    def _heredoc(self, node: "Node", depth: int) -> None:
        body = next((child for child in node.children if child.type == "heredoc_body"), node)
        begin, end = (body.start_byte, body.end_byte) if body is not node else (0, 0)
        others = bytearray(self.raw)
        for known in ((begin, end), *((each.start_byte, each.end_byte) for each in self.fixed)):
            others[slice(*known)] = b" " * (known[1] - known[0])
        if others.count(b"<<") > 1:
            raise TooComplex("where its here-documents end is not clear")
        _require_certain_end(node)
        text = self.raw[begin:end].decode()
        is_quoted = any(
            child.type == "heredoc_start" and b"'" in (child.text or b"") for child in node.children
        )
        self.document = text if is_quoted or not re.search(r"[$\\]", text) else ""
        for child in node.children:
            if child.type in ("file_redirect", "pipeline"):
                self._walk(child, depth + 1)
            elif child.is_named and child.type not in ("heredoc_start", "heredoc_body", "heredoc_end"):
                raise TooComplex("there is more text after a here-document")

    def _word(self, node: "Node", depth: int) -> ShellWord:
        if node.type in _LITERAL or node.type in ("test_operator", "brace_expression") or not node.is_named:
            return unquote(self._text(node))
        if node.type == "string":
            return self._read_quoted(node, depth)
        if node.type == "concatenation":
            return self._join_parts(node, depth)
        if node.type in ("command_substitution", "process_substitution"):
            self._walk(node, depth + 1)
        elif node.type == "expansion" and not _PLAIN_EXPANSION.fullmatch(self._text(node)):
            raise TooComplex(f"{self._text(node)} is not judged")
        elif node.type not in _WORDS:
            raise TooComplex(f"{node.type.replace('_', ' ')} is not judged")
        return ShellWord(text=UNKNOWN_TEXT, loose=True)

    def _read_quoted(self, node: "Node", depth: int) -> ShellWord:
        at, text = node.start_byte + 1, ""
        for child in node.children[1:-1]:
            if child.type in ("string_content", '"'):
                continue
            text += _unquote_text(self.raw[at : child.start_byte].decode())
            text += self._read_expansion(child, depth)
            at = child.end_byte
        text += _unquote_text(self.raw[at : node.end_byte - 1].decode())
        return ShellWord(text=text, loose=is_open_ended(text))

    def _read_expansion(self, node: "Node", depth: int) -> str:
        """Return what an expansion in quotes gives; that is known of a here-document that `cat` repeats."""
        names = {command.words[0].text for command in self.commands if command.words}
        is_cat = names.isdisjoint(_REDEFINE) and not any(command.assigned for command in self.commands)
        found, ran, document = _find_fixed_text(self._text(node)), len(self.commands), self.document
        self._word(node, depth)
        if found is None or not is_cat or b"function" in self.raw or b"()" in self.raw[: node.start_byte]:
            return UNKNOWN_TEXT
        del self.commands[ran:]
        self.document = document
        return found

    def _join_parts(self, node: "Node", depth: int) -> ShellWord:
        _require_no_gaps(node, _NOTHING)
        source = self._text(node)
        words = [self._word(child, depth) for child in node.children]
        if re.search(r"\{[^}]*(?:,|\.\.)", source) and "${" not in source:
            return ShellWord(text=UNKNOWN_TEXT, loose=True)
        text = "".join(word.text for word in words)
        pairs = zip(words, node.children, strict=True)
        spills = any(word.loose and child.type != "string" for word, child in pairs)
        return ShellWord(text=text, loose=spills or is_open_ended(text))


_BLANK = regex(rb"[ \t\n]*(?:(?:[ \t]\\\n|\\\n[ \t])[ \t\n]*)*")
"""White space to bash; a continued line only beside a blank, since without one it continues a word."""
_NOTHING = regex(rb"")
_ARITHMETIC = frozenset(
    {
        *("binary_expression", "unary_expression", "postfix_expression", "parenthesized_expression"),
        *("number", "variable_name", "word", "compound_statement", "test_command", "arithmetic_expansion"),
    }
)
_EXPANDED = regex(r"\$\w+|\$\{\w+\}|\\[^\n]")
"""What is replaced in a here-document without running anything."""
_FILLING = frozenset({b"read", b"mapfile", b"readarray", b"printf", b"getopts"})
"""Commands that give a variable any text."""


def _find_fixed_text(substitution: str) -> str | None:
    found = _FIXED_TEXT.fullmatch(substitution)
    if found is None or found["end"] not in found.groups()[:3]:
        return None
    is_certain = all(line.strip() != found["end"] for line in found["text"].splitlines())
    return found["text"].rstrip("\n") if is_certain else None


def _require_no_gaps(node: "Node", allowed: re.Pattern[bytes] = _BLANK) -> None:
    """Refuse bytes between two nodes that are not white space to bash."""
    raw, at = node.text or b"", 0
    for child in node.children:
        if allowed.fullmatch(raw[at : child.start_byte - node.start_byte]) is None:
            raise TooComplex("it cannot be parsed with certainty")
        at = child.end_byte - node.start_byte


def _require_word_start(node: "Node", raw: bytes) -> None:
    """Refuse a comment that bash may take for a part of a word."""
    before = raw[: node.start_byte][-1:]
    if node.type == "comment" and before not in (b"", b" ", b"\t", b"\n", b";"):
        raise TooComplex("where a comment begins is not clear")


def _require_certain_end(heredoc: "Node") -> None:
    parts = {child.type: (child.text or b"").decode() for child in heredoc.children}
    start, body = parts.get("heredoc_start", ""), parts.get("heredoc_body", "")
    name = start.strip("'\"").removeprefix("\\")
    is_plain = re.fullmatch(r"\w+", name) and parts.get("heredoc_end", "").strip() == name
    if not is_plain or any(line.strip() == name for line in body.splitlines()):
        raise TooComplex("the end of a here-document is not clear")
    if start == name and re.search(r"[`$\\]", _EXPANDED.sub("", body)):
        raise TooComplex("a here-document with expansions is not judged; quote its delimiter")


def _unquote_text(text: str) -> str:
    """Return what text in double quotes means. Raises TooComplex where the parser missed an expansion."""
    if re.search(r"(?<!\\)(?:\\\\)*(?:`|\$[({\w])", text):
        raise TooComplex("an expansion in quotes is not clear")
    return re.sub(r'\\(?:\n|(["\\$`]))', lambda found: found[1] or "", text)


def _require_plain_numbers(top: "Node") -> None:
    """Refuse arithmetic on anything except numbers and variables that always hold numbers.

    The shell runs commands that stand in what the variables of arithmetic hold.
    """
    sums = [node for node in _walk_nodes(top) if node.type == "arithmetic_expansion" or _is_sum(node)]
    inside = {part.type for node in sums for part in _walk_nodes(node) if part.is_named}
    if not inside <= _ARITHMETIC:
        raise TooComplex("arithmetic over expansions is not judged")
    if inside & {"variable_name", "word"} and not all(map(_gives_numbers, _walk_nodes(top))):
        raise TooComplex("arithmetic over variables that may hold text is not judged")


def _walk_nodes(node: "Node") -> Iterator["Node"]:
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(found.children)


def _is_sum(node: "Node") -> bool:
    return node.type in ("compound_statement", "test_command") and node.children[0].text == b"(("


def _gives_numbers(node: "Node") -> bool:
    if node.type == "variable_assignment":
        value = node.child_by_field_name("value")
        return value is not None and value.type in ("number", "arithmetic_expansion")
    fills = node.type == "command_name" and node.text in _FILLING
    return node.type != "for_statement" and not fills
