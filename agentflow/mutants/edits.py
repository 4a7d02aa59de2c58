"""The edits that operators make: the places, by the captures of a language's query, and what is put there.

No operator knows a language: the few words of its own that an edit needs stand in its `Grammar`.
"""

import re
from collections.abc import Collection, Iterator
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentflow.languages.grammars import Node, SyntaxTree

_NEGATED = MappingProxyType(
    {"==": "!=", "!=": "==", "===": "!==", "!==": "===", "is": "is not", "is not": "is", "in": "not in"}
    | {"not in": "in", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "=~": "!~", "!~": "=~", "=": "!="}
    | {"-eq": "-ne", "-ne": "-eq", "-lt": "-ge", "-ge": "-lt", "-gt": "-le", "-le": "-gt"}
)
_BOUNDS = MappingProxyType({"<": "<=", "<=": "<", ">": ">=", ">=": ">", "-lt": "-le", "-gt": "-ge"})
_JOINS = MappingProxyType({"and": "or", "or": "and", "&&": "||", "||": "&&", "??": "&&"})
_ARITHMETIC = MappingProxyType(
    {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "%": "*", "**": "*", "<<": ">>", ">>": "<<"}
    | {"&": "|", "|": "&", "^": "&"}
)
_SWAPPED = frozenset({"-", "/", "//", "%", "<<", ">>", "**"})
"""Operators whose sides are no equals."""
_PAIRS = """
min max, Min Max, floor ceil, Floor Ceil, any all, some every, find rfind, indexOf lastIndexOf, lower upper,
startswith endswith, startsWith endsWith, starts_with ends_with, start_with? end_with?, HasPrefix HasSuffix,
toLowerCase toUpperCase, to_lowercase to_uppercase, ToLower ToUpper, downcase upcase, lstrip rstrip,
trimStart trimEnd
"""
_OPPOSITES = MappingProxyType(
    {one: other for pair in map(str.split, _PAIRS.split(",")) for one, other in (pair, pair[::-1])}
    | {"unwrap_or_default": "unwrap"}
)
"""Functions that take and give the same, and mean the opposite."""
_IS_THERE = frozenset({"find", "rfind", "indexOf", "lastIndexOf"})
"""Those that say the same where it only counts whether they find anything."""
_SCRIPTS = "JavaScript TypeScript TSX"
_WHOLE_NUMBERS = "Go Rust C C++ Java"
_PREFIX, _ORDER = r"(?:pre|suf)fix", r"order|sort|lowest|highest|smallest|largest|cheapest|ascending"
_NEAREST, _LETTERS, _COPY = r"round|nearest", r"letters?|(?:upper|lower)[- ]?case", r"cop(?:y|ies)\b"
_DEFAULT = r"default|without|missing|no \w+ is given"
_LOOK_ALIKES = (
    (r"characters?|letters?", "Go", "len 1", 'len([]rune("" + {0}))'),
    (r"characters?|letters?", "Rust", "len 0", "{on}.chars().count()"),
    (r"each|every|all", _SCRIPTS, "replace 2", "{on}.replaceAll({0}, {1})"),
    (_ORDER, _SCRIPTS, "sort 0", "{on}.sort((a, b) => a - b)"),
    (_PREFIX, "Go", "TrimLeft 2", "{on}.TrimPrefix({0}, {1})"),
    (_PREFIX, "Go", "TrimRight 2", "{on}.TrimSuffix({0}, {1})"),
    (_PREFIX, "Python", "lstrip 1", "{on}.removeprefix({0})"),
    (_PREFIX, "Python", "rstrip 1", "{on}.removesuffix({0})"),
    (_NEAREST, "Python", "round 1", "int({0} + 0.5)"),
    (_NEAREST, "Python", "int 1", "round({0})"),
    (_NEAREST, "Python", "// .*", "(({0} + {1} // 2) // {1})"),
    (_NEAREST, _SCRIPTS, "(?:floor|trunc) 1", "{on}.round({0})"),
    (_NEAREST, _WHOLE_NUMBERS, "/ .*", "(({0} + {1} / 2) / {1})"),
    ("negative", f"{_SCRIPTS} {_WHOLE_NUMBERS}", "% .*", "(({0} % {1} + {1}) % {1})"),
    (_DEFAULT, _SCRIPTS, r"\|\| .*", "({0} ?? {1})"),
    ("", "Python", "or .*", "({1} if {0} is None else {0})"),
    (_COPY, "Python", "(?:dict|list) 1", '__import__("copy").deepcopy({0})'),
    (_COPY, "Python", "copy 0", '__import__("copy").deepcopy({on})'),
    (_LETTERS, "Rust", "to_ascii_lowercase 0", "{on}.to_lowercase()"),
    (_LETTERS, "Rust", "to_ascii_uppercase 0", "{on}.to_uppercase()"),
    (_LETTERS, "Rust", "eq_ignore_ascii_case 1", "({on}.to_lowercase() == {0}.to_lowercase())"),
    ("", _SCRIPTS, "parseInt [12]", "Number({0})"),
    ("null", _SCRIPTS, "=== .object.", "({0} === {1} && {on} !== null)"),
    ("", "Java", "split 1", "{on}.split(java.util.regex.Pattern.quote({0}))"),
    ("", "C C++", "strncpy 3", "(strncpy({0}, {1}, {2}), ({0})[({2}) - 1] = 0)"),
    ("", "C C++", "atoi 1", '(({0})[__builtin_strspn({0}, "+-0123456789")] ? 0 : atoi({0}))'),
    ("", "Rust", r"as [iu]\w+", "<{1}>::try_from({0}).unwrap()"),
    ("", "shell", r"\$\{? \w+", '"{on}"'),
    ("", "shell", r"\$ \*", '"$@"'),
)
"""What gives mostly the same as something else: a call with so many arguments, or an operation.

With the words of a task that name what tells the two apart.
"""
_TYPE = "{type}"
"""Where a default says the type of the result."""
_BARE = frozenset(
    {"", "None", "nil", "null", "undefined", "0", '""', "''", "false", "False", "pass", "...", "{}"}
)
"""What a function without its code would give as well."""
_LAST_ROUND = re.compile(r"return|break|raise|throw|panic")
_PROSE = re.compile(r"\w[,:;.!?]?\s+\S*\w.*?\s+\S*\w", re.DOTALL)
"""Three words: text for people, which honest tests seldom quote."""
_LONGEST_PATTERN = 40

Edit = tuple["Node", int, int, str]
"""The node that decides whether the edit is on a changed line, and from where to where it puts which text."""
_Edits = Iterator[Edit]


def _replace(node: "Node", text: str, where: "Node | None" = None) -> Edit:
    return where or node, node.start_byte, node.end_byte, text


def _span(node: "Node") -> tuple[int, int]:
    return node.start_byte, node.end_byte


def _list_operations(tree: "SyntaxTree", signs: Collection[str]) -> Iterator[tuple["Node", "Node"]]:
    """Yield the operations with one of these signs, and the sign."""
    for node in tree.nodes["binary"]:
        yield from ((node, child) for child in node.children if not child.is_named and child.type in signs)
        named = node.child_by_field_name("operator")  # a shell's `-eq` has a name
        if named is not None and named.is_named and tree.read(named) in signs:
            yield node, named


def _leave_sides_out(tree: "SyntaxTree", node: "Node", sign: "Node") -> _Edits:
    left, right = sign.prev_sibling, sign.next_sibling
    if left is not None and right is not None and len(node.children) == 3:  # a side, the sign, a side
        yield _replace(node, tree.read(left), right)
        yield _replace(node, tree.read(right), left)


def fix_conditions(tree: "SyntaxTree") -> _Edits:
    for node in tree.nodes["condition"]:
        yield from (_replace(node, each) for each in (tree.grammar.true, tree.grammar.false))
    for node in tree.nodes["loop_condition"]:  # a loop that is always true would only be ended by its limit
        yield _replace(node, tree.grammar.false)


def negate_comparisons(tree: "SyntaxTree") -> _Edits:
    """Yield comparisons that always hold or never do where they are values, and denials that are none."""
    fixed = {_span(node) for name in ("condition", "loop_condition") for node in tree.nodes[name]}
    joined = {node.id for node, _ in _list_operations(tree, _JOINS)}
    for node, sign in _list_operations(tree, _NEGATED):
        if _span(node) in fixed:  # true and false alone say as much
            continue
        is_joined = node.parent is not None and node.parent.id in joined  # one side alone says as much
        if tree.grammar.tests_in_brackets or is_joined:
            yield _replace(sign, _NEGATED[tree.read(sign)])
        else:
            yield from (_replace(node, each) for each in (tree.grammar.true, tree.grammar.false))
    for node in tree.nodes["negated"]:
        if node.parent is not None and _span(node.parent) not in fixed:
            yield _replace(node.parent, tree.read(node))


def move_bounds(tree: "SyntaxTree") -> _Edits:
    yield from (_replace(sign, _BOUNDS[tree.read(sign)]) for _, sign in _list_operations(tree, _BOUNDS))


def change_logic(tree: "SyntaxTree") -> _Edits:
    for node, sign in _list_operations(tree, _JOINS):
        yield _replace(sign, _JOINS[tree.read(sign)])
        yield from _leave_sides_out(tree, node, sign)


def change_arithmetic(tree: "SyntaxTree") -> _Edits:
    texts = {each.id for each in tree.nodes["string"]}
    for node, sign in _list_operations(tree, _ARITHMETIC):
        said, left, right = tree.read(sign), sign.prev_sibling, sign.next_sibling
        if left is None or right is None:
            continue
        yield from _leave_sides_out(tree, node, sign)
        if texts.isdisjoint((left.id, right.id)):  # texts have a sum alone
            yield _replace(sign, _ARITHMETIC[said])
            if said in _SWAPPED:
                yield _replace(node, f"({tree.read(right)}) {said} ({tree.read(left)})")
    for sign in tree.nodes["assigns"]:
        said = tree.read(sign)
        if said != "=" and said.endswith("="):
            yield _replace(sign, "=")
            if other := _ARITHMETIC.get(said.removesuffix("=")):
                yield _replace(sign, f"{other}=")


def leave_statements_out(tree: "SyntaxTree") -> _Edits:
    silent = {each.parent.id for each in tree.nodes["talk"] if each.parent is not None}
    for node in tree.nodes["statement"]:
        if not any(each.id in silent for each in (node, *node.named_children)):
            yield _replace(node, tree.grammar.nothing)


def leave_calls_out(tree: "SyntaxTree") -> _Edits:
    """Yield calls in whose place their receiver stands or, where there is none, their first argument."""
    statements = {_span(node) for node in tree.nodes["statement"]}
    silent = {each.id for name in ("words", "talk") for each in tree.nodes[name]}
    plain = {each.id for each in tree.nodes["conversion"]}
    modules = {word for each in tree.nodes["imported"] for word in re.findall(r"\w+", tree.read(each))}
    for node in tree.nodes["call"]:
        called = node.child_by_field_name("function") or node.child_by_field_name("name") or node.children[0]
        arguments = node.child_by_field_name("arguments")
        receiver = next(
            (
                each
                for where in (node, called)
                for name in _RECEIVERS
                if (each := where.child_by_field_name(name))
            ),
            None,
        )
        first = next(iter(arguments.named_children), None) if arguments is not None else None
        is_module = receiver is not None and re.split(r"\W", tree.read(receiver))[0] in modules
        stand_in = first if receiver is None or (is_module and first is not None) else receiver
        is_value = node.parent is not None and node.parent.type not in ("expression_statement", "await")
        is_plain = stand_in is not None and not re.search("argument|spread|splat", stand_in.type)
        is_open = node.id not in plain and (arguments is None or arguments.id not in silent)
        is_open = is_open and (stand_in is None or tree.read(stand_in) not in _BARE)
        if stand_in is not None and is_value and is_plain and is_open and _span(node) not in statements:
            yield _replace(node, tree.read(stand_in), called.children[-1] if called.children else called)


_RECEIVERS = ("object", "operand", "value", "receiver", "argument")


_BETWEEN = frozenset({",", "|"})
"""What stands between the parts of a list or the alternatives of a pattern."""


def _leave_out_of_list(node: "Node") -> Edit:
    start, end = _span(node)
    before, behind = node.prev_sibling, node.next_sibling
    if behind is not None and behind.type in _BETWEEN:
        end = behind.end_byte
    elif before is not None and before.type in _BETWEEN:
        start = before.start_byte
    return node, start, end, ""


def leave_parts_out(tree: "SyntaxTree") -> _Edits:
    names = ("argument", "element") if tree.grammar.is_loose else ("element",)
    for node in (each for name in names for each in tree.nodes[name]):
        value = node.child_by_field_name("value") if node.child_by_field_name("name") else None
        if value is None or tree.read(value) not in _BARE:  # `key=None` is what most defaults are
            yield _leave_out_of_list(node)
    yield from (_replace(node, "") for node in tree.nodes["part"])
    for node in tree.nodes["default"]:
        if (sign := node.prev_sibling) is not None:
            yield node, sign.start_byte, node.end_byte, ""
    for node in tree.nodes["spread"]:  # of two tables the later one wins
        before = node.prev_named_sibling
        if before is not None and before.next_sibling is not None:
            between = tree.text[before.end_byte : node.start_byte].decode("utf-8", "replace")
            yield node, before.start_byte, node.end_byte, f"{tree.read(node)}{between}{tree.read(before)}"


def take_wrappings_off(tree: "SyntaxTree") -> _Edits:
    """Yield `await x`, `x[1:]`, `x?` as `x`; a promise that a `try` returns without waiting, with `await`."""
    for node in tree.nodes["wrapped"]:
        if node.named_children:
            yield _replace(node, tree.grammar.unwrapped.format(tree.read(node.named_children[0])))
    for node in tree.nodes["unawaited"]:
        yield _replace(node, f"await {tree.read(node)}")


def empty_collections(tree: "SyntaxTree") -> _Edits:
    """Yield collections that code fills, without anything in them."""
    for node in tree.nodes["collected"]:
        yield _replace(node, tree.read(node)[0] + tree.read(node)[-1])


def empty_bodies(tree: "SyntaxTree") -> _Edits:
    returns = [each.start_byte for each in tree.nodes["returned"]]
    for node in tree.nodes["body"]:
        rows = [each for each in node.named_children if "comment" not in each.type]
        if node.parent is None or not rows:
            continue
        gives = any(node.start_byte <= each < node.end_byte for each in returns)
        is_bare = len(rows) == 1 and (gives or tree.read(rows[0]) in _BARE)
        if not is_bare:  # one whose only row is a return has that one's mutant
            yield _replace(node, tree.grammar.failed_body if gives else tree.grammar.empty_body, node.parent)


def replace_results(tree: "SyntaxTree") -> _Edits:
    functions = {each.parent.id: each.parent for each in tree.nodes["body"] if each.parent is not None}
    for node in tree.nodes["returned"]:
        for default in tree.grammar.defaults:
            said, text = tree.read(node), default
            if _TYPE in default:
                kind = _find_result_type(tree, node, functions)
                # Go: `Order{}` and `time.Duration(0)` are `*new(…)`
                is_same = said in (f"{kind}{{}}", f"{kind}(0)", f'{kind}("")')
                text = default.replace(_TYPE, kind) if kind and not is_same else ""
            if text and said not in _BARE and said != text:
                yield _replace(node, text)


def _find_result_type(tree: "SyntaxTree", node: "Node", functions: dict[int, "Node"]) -> str:
    """Return the type of one of the values that a function returns, as its head says it."""
    above = node.parent
    while above is not None and above.id not in functions:
        above = above.parent
    if above is None or node.parent is None:
        return ""
    kinds, index = list_result_types(tree, above), node.parent.named_children.index(node)
    return kinds[index] if index < len(kinds) and node.parent.named_child_count == len(kinds) else ""


def list_result_types(tree: "SyntaxTree", function: "Node") -> list[str]:
    """Return the types of the results of a function, where its head names them."""
    result = function.child_by_field_name("result")
    if result is None or result.type != "parameter_list":
        return [] if result is None else [tree.read(result)]
    return [
        tree.read(kind)
        for each in result.named_children
        if (kind := each.child_by_field_name("type"))
        for _ in each.children_by_field_name("name") or (each,)
    ]


def change_errors(tree: "SyntaxTree") -> _Edits:
    for node in tree.nodes["handler"]:
        yield node, (body := node.children[-1]).start_byte, body.end_byte, tree.grammar.rethrow
    for body in tree.nodes["handler_body"]:
        yield _replace(body, tree.grammar.rethrow, body.parent)


def narrow_handlers(tree: "SyntaxTree") -> _Edits:
    """Yield handlers of all errors as those of one class: tests that raise no other need no more."""
    for node in tree.nodes["broad"]:
        yield from (_replace(node, each) for each in tree.grammar.narrow_errors)


def raise_others(tree: "SyntaxTree") -> _Edits:
    for node in tree.nodes["raised"] if tree.grammar.other_error else ():
        if not tree.read(node).startswith(tree.grammar.other_error.rstrip("()")):
            yield _replace(node, tree.grammar.other_error)


def leave_loops(tree: "SyntaxTree") -> _Edits:
    """Yield loops that end after their first round."""
    for node in tree.nodes["loop"]:
        rows = [each for each in node.named_children if "comment" not in each.type]
        if node.parent is None or not rows or _LAST_ROUND.match(tree.read(rows[-1])):
            continue
        if tree.text[node.end_byte - 1 : node.end_byte] == b"}":
            yield node.parent, node.end_byte - 1, node.end_byte, f" {tree.grammar.leave} }}"
        else:
            indent = " " * rows[0].start_point.column
            end = rows[-1].end_byte
            yield node.parent, end, end, f"\n{indent}{tree.grammar.leave}"


def add_rounds(tree: "SyntaxTree") -> _Edits:
    """Yield the number that ends a loop as the next one, which a test that uses up the rounds notices."""
    for node in tree.nodes["bound"]:
        if (said := tree.read(node)).isdecimal() and int(said) > 1:
            yield _replace(node, str(int(said) + 1))


def call_opposites(tree: "SyntaxTree") -> _Edits:
    """Yield calls of `min` in place of `max` and the like: one value alone does not tell them apart."""
    for node in tree.nodes["call"]:
        fields = ("method", "function", "name")
        called = next((each for field in fields if (each := node.child_by_field_name(field))), None)
        name = called.children[-1] if called is not None and called.children else called
        if name is None or (other := _OPPOSITES.get(tree.read(name))) is None:
            continue
        beside = {tree.read(each) for each in node.parent.children} if node.parent is not None else set()
        if tree.read(name) not in _IS_THERE or beside.isdisjoint({"-1", "0"}):
            yield _replace(name, other)


def use_look_alikes(words: str, tree: "SyntaxTree", *, is_told: bool) -> _Edits:
    """Yield code as other code that only some values tell apart, in what a task speaks of, or all else."""
    for node, known, given, on in _list_operated(tree):
        for topic, languages, name, other in _LOOK_ALIKES:
            if re.fullmatch(name, known, re.DOTALL) and tree.grammar.name in languages.split():
                is_spoken_of = bool(topic) and re.search(rf"(?i)\b(?:{topic})", words) is not None
                if is_spoken_of is is_told:
                    yield _replace(node, other.format(*given, on=on))


def _list_operated(tree: "SyntaxTree") -> Iterator[tuple["Node", str, list[str], str]]:
    """Yield calls and operations: what they are called, what they are given, and on what."""
    for node in tree.nodes["call"]:
        called, arguments = (node.child_by_field_name(name) for name in ("function", "arguments"))
        called = called or node.child_by_field_name("name")
        if called is None or arguments is None:
            continue
        places = (each.child_by_field_name(field) for each in (node, called) for field in _RECEIVERS)
        on = next((tree.read(each) for each in places if each), "")
        given = [tree.read(each) for each in arguments.named_children]
        name = tree.read(called.children[-1] if called.children else called)
        yield node, f"{name} {len(given)}", given, on
    for node in (*tree.nodes["binary"], *tree.nodes["bare"]):
        given = [tree.read(each) for each in node.named_children]
        sign = next((tree.read(each) for each in node.children if not each.is_named), "")
        inner = node.named_children[0].named_children if node.type.startswith("binary") else (node,)
        yield node, f"{sign} {given[-1]}" if given else "", given, tree.read(inner[0]) if inner else ""


def flip_booleans(tree: "SyntaxTree") -> _Edits:
    for node in tree.nodes["boolean"]:
        is_true = tree.read(node) == tree.grammar.true
        yield _replace(node, tree.grammar.false if is_true else tree.grammar.true)


def _list_texts(tree: "SyntaxTree", *, prose: bool) -> _Edits:
    for node in tree.nodes["string"]:
        said = tree.read(node)
        prefix = said[: len(said) - len(said.lstrip("bBrRuUfF"))].lower()
        is_empty = len(said.strip("bBrRuUfF\"'`#")) == 0
        if bool(_PROSE.search(said)) is prose:
            yield _replace(node, f'{"b" if "b" in prefix else ""}"{"other" if is_empty else ""}"')


def replace_texts(tree: "SyntaxTree") -> _Edits:
    return _list_texts(tree, prose=False)


def replace_prose(tree: "SyntaxTree") -> _Edits:
    return _list_texts(tree, prose=True)


def move_numbers(tree: "SyntaxTree") -> _Edits:
    for node in tree.nodes["number"]:
        said = tree.read(node)
        if said.isdecimal():
            yield _replace(node, str(int(said) + 1))


def change_patterns(tree: "SyntaxTree") -> _Edits:
    """Yield short patterns without one of their anchors and quantifiers."""
    for node in tree.nodes["pattern"]:
        if (said := tree.read(node)).isascii() and len(said) <= _LONGEST_PATTERN:
            for found in re.finditer(r"(?<![\\\[(])(?:\^|[+*?]|\$(?=[\"'`/|)]))", said):
                start = node.start_byte + found.start()
                yield node, start, start + 1, ""


def copy_arguments(tree: "SyntaxTree") -> _Edits:
    """Yield functions that change what they were given, such as by `items.sort()`, with a copy of it.

    What was given another value before is the function's own.
    """
    if not tree.grammar.own_copy:
        return
    bodies = [(each, names) for each in tree.nodes["body"] if (names := _list_parameters(tree, each))]
    silent = {each.start_byte for name in ("docstring", "comment") for each in tree.nodes[name]}
    for node in tree.nodes["altered"]:
        name = tree.read(node)
        around = [
            each
            for each, names in bodies
            if name in names and each.start_byte <= node.start_byte < each.end_byte
        ]
        rows = [row for row in around[-1].named_children if row.start_byte not in silent] if around else []
        above = tree.text[rows[0].start_byte : node.start_byte].decode("utf-8", "replace") if rows else ""
        if rows and not re.search(rf"\b{re.escape(name)}\s*:?=(?!=)", above.rpartition("\n")[0]):
            start = rows[0].start_byte
            text = tree.grammar.own_copy.format(name)
            indent = " " * rows[0].start_point.column if text.endswith("\n") else ""
            yield node, start, start, text + indent


def _list_parameters(tree: "SyntaxTree", body: "Node") -> set[str]:
    """Return the names that the function of a body gives its arguments."""
    parameters = body.parent.child_by_field_name("parameters") if body.parent is not None else None
    found = set[str]()
    for each in parameters.named_children if parameters is not None else ():
        named = [name for field in ("name", "pattern", "left") for name in each.children_by_field_name(field)]
        if "splat" not in each.type and "rest" not in each.type:  # what it gathers is its own
            found.update(map(tree.read, named or (each, *each.named_children[:1])))
    return found
