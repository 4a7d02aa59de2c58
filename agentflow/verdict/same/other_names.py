"""Renamed parameters, variables and functions in JavaScript, TypeScript, Go and Rust, by tokens."""

import re
from collections.abc import Callable, Iterator, Mapping

from agentflow.core.languages import COMPONENTS, SCRIPTS
from agentflow.verdict.tokens import Tokens, read_code

_NAMES_MATTER = frozenset(
    {
        *("eval", "Function", "with", "toString", "Reflect", "Proxy", "type_name", "FuncForPC", "stringify"),
        *("$inject", "angular", "awilix", "inject", "rewire", "proxyquire"),
        *("getOwnPropertyNames", "getOwnPropertyDescriptors"),
    }
)
"""Names whose use may read the spelling of other names."""
_TYPES = frozenset({"class", "struct", "enum", "interface", "impl", "trait", "type", "namespace", "union"})
"""Keywords whose blocks contain names of members."""
_GLOBALS = ("globalThis", "window", "global", "self")


def _string(code: Tokens, place: int) -> str:
    """Return the text of a string, with its quotes; empty for another token."""
    is_string = code.get_word(place).startswith("\x01")
    return code.text[code.places[place] : code.find_end(place)] if is_string else ""


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
