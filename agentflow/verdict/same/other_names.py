"""Renamed parameters, variables and functions in JavaScript, TypeScript, Go and Rust, by tokens."""

import re
from collections.abc import Callable, Iterator, Mapping

from agentflow.core.languages import COMPONENTS, GO, RUST, SCRIPTS
from agentflow.verdict.tokens import OPENS, Tokens, read_code

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]\w*|[a-z]")
_CONTROL = frozenset({"if", "for", "while", "switch", "with", "catch", "return", "match", "else"})
_RESERVED = frozenset(
    {
        *("arguments", "await", "async", "eval", "undefined", "this", "self", "super", "crate", "let"),
        *("const", "var", "function", "func", "fn", "new", "static", "yield", "of", "get", "set"),
        *("nil", "true", "false"),
        *("null", "NaN", "Infinity", "iota", "break", "continue", "default", "delete", "typeof", *_CONTROL),
    }
)
_NAMES_MATTER = frozenset(
    {
        *("eval", "Function", "with", "toString", "Reflect", "Proxy", "type_name", "FuncForPC", "stringify"),
        *("$inject", "angular", "awilix", "inject", "rewire", "proxyquire"),
        *("getOwnPropertyNames", "getOwnPropertyDescriptors"),
    }
)
"""Names whose use may read the spelling of other names."""
_MACROS = frozenset(
    {
        *("println", "print", "eprintln", "eprint", "format", "write", "writeln", "panic", "vec", "matches"),
        *("unreachable", "todo", "assert_eq", "assert_ne"),
    }
)
"""Macros of Rust that show no names except those in their format strings."""
_TYPES = frozenset({"class", "struct", "enum", "interface", "impl", "trait", "type", "namespace", "union"})
"""Keywords whose blocks contain names of members."""
_GLOBALS = ("globalThis", "window", "global", "self")
_ATTRIBUTES = frozenset(
    {
        *("inline", "must_use", "allow", "test", "cfg", "doc", "derive", "cold", "deny", "warn", "repr"),
        *("deprecated", "default", "should_panic", "ignore", "forbid", "non_exhaustive", "expect"),
    }
)
"""Attributes of Rust that do not read the names of a function."""


def _string(code: Tokens, place: int) -> str:
    """Return the text of a string, with its quotes; empty for another token."""
    is_string = code.get_word(place).startswith("\x01")
    return code.text[code.places[place] : code.find_end(place)] if is_string else ""


def restore_local_names(path: str, before: str, after: str) -> str | None:
    """Return the new text with the old names of local variables; None if other names differ too."""
    if not path.endswith((*SCRIPTS, *RUST, *GO)):
        return None
    old, new = read_code(path, before), read_code(path, after)
    if old is None or new is None or len(old.words) != len(new.words):
        return None
    differing = {
        place for place, pair in enumerate(zip(old.words, new.words, strict=True)) if len({*pair}) > 1
    }
    if not _NAMES_MATTER.isdisjoint(old.words) or not _has_plain_attributes(old):
        return None
    left = {place for place in differing if not old.words[place].startswith("\x01")}
    while left:
        place = min(left)
        names = (old.words[place], new.words[place])
        region = next((each for each in _regions(old, names[0]) if place in each), None)
        if region is None or not _is_renamed_in(region, old, new, names):
            return None
        left -= {*region}
    restored, end = "", 0
    for place in sorted(differing):
        if not old.words[place].startswith("\x01"):
            restored += after[end : new.places[place]] + old.words[place]
            end = new.places[place] + len(new.words[place])
    return restored + after[end:]


def _has_plain_attributes(code: Tokens) -> bool:
    """Return whether all attributes of a Rust file are known not to read names."""
    starts = [place + 1 + (code.get_word(place + 1) == "!") for place in code.find_places("#")]
    if code.is_script:
        return "@" not in code.words
    return all(code.get_word(place) == "[" and code.get_word(place + 1) in _ATTRIBUTES for place in starts)


def _is_renamed_in(region: range, old: Tokens, new: Tokens, names: tuple[str, str]) -> bool:
    """Return whether every use of a name in a region got the new name, which was unused there."""
    was, now = names
    uses = [place for place in region if old.words[place] == was]
    said = (_string(old, place) for place in region)
    return (
        all(_NAME.fullmatch(name) and name not in _RESERVED for name in names)
        and now[0].islower() == was[0].islower()
        and all(new.words[place] == now for place in uses)
        and now not in (old.words[place] for place in region)
        and was not in (new.words[place] for place in region)
        and _TYPES.isdisjoint(old.words[place] for place in region)
        and not any({*re.findall(r"\w+", text)} & {*names} for text in said if text)
        and not any(_is_member(old, place, region.start) or _names_function(old, place) for place in uses)
        and not any(_is_odd_macro(old, place) for place in region)
    )


def _is_odd_macro(code: Tokens, place: int) -> bool:
    is_macro = code.get_word(place + 1) == "!" and code.get_word(place + 2) in OPENS
    return code.is_rust and is_macro and code.get_word(place) not in _MACROS


def _names_function(code: Tokens, place: int) -> bool:
    """Return whether a function takes its `name` from this place."""
    if code.get_word(place - 1) == "function":
        return True
    behind = place + 2
    is_arrow = "=>" in (code.get_word(behind + 1), code.get_word(code.partners.get(behind, behind) + 1))
    return code.get_word(place + 1) == "=" and (
        code.get_word(behind) in ("function", "async", "class") or is_arrow
    )


def _is_member(code: Tokens, place: int, start: int) -> bool:
    """Return whether a name may be a field, a key, a label, a method or a path."""
    last, following = code.get_word(place - 1), code.get_word(place + 1)
    is_given = code.around[place] == start or place == start
    is_short = last in ("{", ",") and following in (",", "}") and code.get_word(code.around[place]) == "{"
    is_key = following == ":" and last in ("{", ",", ";", "}", ")", "(", "") and not is_given
    is_method = following == "(" and code.get_word(code.partners[place + 1] + 1) in ("{", ":")
    is_path = last in (".", "?.", "::", "'", "break", "continue", "goto", "#") or following in ("::", "!")
    is_label = following == ":" and last in ("{", ";", "}")
    return is_short or is_key or is_method or is_path or is_label


def _regions(code: Tokens, name: str) -> Iterator[range]:
    """Yield the functions and blocks in which a name is a parameter or a local variable."""
    for place in code.find_places(name):
        begin = code.around[place]
        if code.get_word(place + 1) == "=>" and code.is_script and code.get_word(place - 1) != ".":
            yield range(place, _end_of_arrow(code, place + 1))
        elif code.get_word(begin) == "(" and _is_parameter(code, place):
            end = _end_of_function(code, begin)
            if end:
                yield range(begin, end)
        elif code.get_word(begin) == "{" and _is_variable(code, place):
            yield range(begin, code.partners[begin] + 1)


def _is_parameter(code: Tokens, place: int) -> bool:
    last, following = code.get_word(place - 1), code.get_word(place + 1)
    if code.is_script:
        return last in ("(", ",", "...") and following in (",", ")", "=", ":", "?")
    if code.is_rust:
        return last in ("(", ",", "mut") and following == ":"
    return last in ("(", ",") and (
        following.isidentifier() or following in ("*", "...")
    )  # Go: a type follows


def _is_variable(code: Tokens, place: int) -> bool:
    """Return whether a name is declared here, before any other use in its block."""
    begin, last = code.around[place], code.get_word(place - 1)
    is_declared = last in ("let", "const") or (last == "mut" and code.get_word(place - 2) == "let")
    if not is_declared or code.path.endswith(GO) or code.get_word(place + 1) not in ("=", ":"):
        return False
    name, end = code.get_word(place), place + 1
    while end < code.partners[begin] and code.get_word(end) != ";":
        end += 1
    earlier = code.words[begin:place]
    return code.get_word(end) == ";" and name not in (*earlier, *code.words[place + 1 : end])


def _end_of_function(code: Tokens, begin: int) -> int:
    """Return the place behind the function whose parameters begin at a bracket; 0 for other brackets."""
    end = code.partners[begin]
    if code.is_script:
        if code.get_word(end + 1) == "=>":
            return _end_of_arrow(code, end + 1)
        is_function = "function" in (code.get_word(begin - 1), code.get_word(begin - 2)) or _is_method(
            code, begin
        )
        body = end + 1
        if code.get_word(body) == ":":  # of TypeScript: what it returns
            body = next((at for at in range(body, len(code.words)) if code.get_word(at) in ("{", ";")), body)
    else:
        keyword = "fn" if code.is_rust else "func"
        is_function = code.get_word(begin - 2) == keyword or (code.get_word(begin - 1) == keyword)
        body = next((at for at in range(end, len(code.words)) if code.get_word(at) in ("{", ";")), 0)
    return code.partners[body] + 1 if is_function and code.get_word(body) == "{" else 0


def _end_of_arrow(code: Tokens, arrow: int) -> int:
    """Return the place behind the body of an arrow function."""
    place = arrow + 1
    if code.get_word(place) == "{":
        return code.partners[place] + 1
    while place < len(code.words) and code.get_word(place) not in (",", ";", ")", "]", "}"):
        place = code.partners.get(place, place) + 1
    return place


def is_function_of_scripts(name: str, texts: Mapping[str, str], is_document: Callable[[str], bool]) -> bool:
    """Return whether every use of a name means one function of JavaScript or TypeScript.

    It is defined once, only called, exported, and imported from files of the repository by its name; no code
    lists what a module has, or makes up names.
    """
    said = re.compile(rf"(?<![\w$]){re.escape(name)}(?![\w$])")
    where = [path for path, text in texts.items() if said.search(text) and not is_document(path)]
    scripts = [read_code(path, text) for path, text in texts.items() if path.endswith(SCRIPTS)]
    if not where or not all(path.endswith(SCRIPTS) for path in where):
        return False
    others = [path for path in texts if path.endswith((*COMPONENTS, ".html"))]
    known = [each for each in scripts if each is not None]
    if others or len(known) < len(scripts) or not all(map(_takes_names_plainly, known)):
        return False
    used = [[_kind_of_use(code, place) for place in code.find_places(name)] for code in known]
    kinds = [kind for each in used for kind in each]
    quoted = (_string(code, place) for code in known for place in range(len(code.words)))
    return (
        kinds.count("defined") == 1
        and "" not in kinds
        and all("called" not in each or {"defined", "listed"} & {*each} for each in used)
        and not any(map(said.search, quoted))
        and not any(f"${name}" in code.text or f"{name}$" in code.text for code in known)
    )


def _takes_names_plainly(code: Tokens) -> bool:
    """Return whether a script imports modules of the repository only by fixed names."""
    if not _NAMES_MATTER.isdisjoint(code.words) or "@" in code.words:
        return False
    if any(code.get_word(place + 1) == "[" for each in _GLOBALS for place in code.find_places(each)):
        return False
    modules = {code.get_word(place) for place in _places_of_modules(code)}
    is_plain = all(
        code.get_word(place + 1) == "." or code.get_word(place + 1) == "=" or code.get_word(place - 2) == "*"
        for module in modules
        for place in code.find_places(module)
    )
    exports = all(code.get_word(place + 1) in (".", "=") for place in code.find_places("exports"))
    own = all(code.get_word(place + 1) == "." for place in code.find_places("module"))
    loads = all(_is_plain_load(code, place) for place in code.find_places("require"))
    is_late = any(code.get_word(place + 1) == "(" for place in code.find_places("import"))
    return is_plain and exports and own and loads and not is_late


def _is_plain_load(code: Tokens, place: int) -> bool:
    """Return whether a `require` has a fixed path, and binds a module of the repository to names."""
    text, begin = _string(code, place + 2), code.get_word(place - 2)
    is_told = code.get_word(place + 1) == "(" and bool(text) and code.get_word(place + 3) == ")"
    is_bound = begin == "}" or code.get_word(place - 3) in ("const", "let", "var")
    return is_told and ((code.get_word(place - 1) == "=" and is_bound) or text[1:2] != ".")


def _places_of_modules(code: Tokens) -> Iterator[int]:
    """Yield the places where a whole module of the repository is bound to a name."""
    for place in range(len(code.words)):
        is_own = _string(code, place)[1:2] == "."
        if is_own and code.get_word(place - 2) == "require" and code.get_word(place - 4).isidentifier():
            yield place - 4
        elif is_own and code.get_word(place - 1) == "from" and code.get_word(place - 3) == "as":
            yield place - 2


def _kind_of_use(code: Tokens, place: int) -> str:
    """Return how a name is used: defined, called, reached or listed; empty for anything else."""
    last, following = code.get_word(place - 1), code.get_word(place + 1)
    if last == "function" and following == "(" and code.around[place] == -1:
        return "defined"
    if following == "(":
        behind = code.get_word(code.partners[place + 1] + 1)
        modules = {code.get_word(each) for each in _places_of_modules(code)}
        is_plain = last not in (".", "function", "new", "get", "set", "static", "async", "*", "#")
        is_own = last == "." and code.get_word(place - 2) in modules and code.get_word(place - 3) != "."
        is_call = behind not in ("{", ":") and not _is_in_class(code, place)
        return ("called" if is_plain else "reached" if is_own else "") if is_call else ""
    is_listed = last in ("{", ",") and following in (",", "}") and code.get_word(code.around[place]) == "{"
    return "listed" if is_listed and _is_list_of_names(code, code.around[place]) else ""


def _is_method(code: Tokens, begin: int) -> bool:
    """Return whether the bracket follows the name of a method, right in the body of a class."""
    block = code.around[begin]
    head = code.words[max(block - 4, 0) : block]
    return code.get_word(block) == "{" and "class" in head and ")" not in head and "." not in head


def _is_in_class(code: Tokens, place: int) -> bool:
    begin = code.around[place]
    return code.get_word(begin) == "{" and not _TYPES.isdisjoint(code.words[max(begin - 4, 0) : begin])


def _is_list_of_names(code: Tokens, begin: int) -> bool:
    """Return whether a brace lists exports, or imports from a file of the repository."""
    end = code.partners[begin]
    if code.around[begin] != -1:
        return False
    if code.words[max(begin - 4, 0) : begin][-4:] == ("module", ".", "exports", "="):
        return True
    if code.get_word(begin - 1) in ("export", "import") or code.get_word(begin - 2) == "import":
        is_from = code.get_word(end + 1) == "from"
        return _string(code, end + 2)[1:2] == "." if is_from else code.get_word(begin - 1) == "export"
    is_taken = code.get_word(begin - 1) in ("const", "let", "var") and code.get_word(end + 2) == "require"
    return is_taken and _string(code, end + 4)[1:2] == "."
