"""Functions of modules and classes in JavaScript and TypeScript, which are made to return something else."""

import re
from collections.abc import Iterator

from agentflow.core.languages import TYPESCRIPT
from agentflow.core.record import Record
from agentflow.verdict.diff.conditions import ASSIGNS, breaks_line
from agentflow.verdict.diff.script_parts import end_of_result, is_body, is_member
from agentflow.verdict.tokens import CLOSES, OPENS, Tokens, read_code

_OTHER = """
function {word}(call, name) {{
  const change = (value) => {{
    if (typeof value === 'boolean') return !value;
    if (typeof value === 'number') return value < 0 ? 1 : value + Math.floor(value / 2) + 1;
    if (typeof value === 'string') return value + '~';
    if (Array.isArray(value)) return [...value.map(change), null];
    if (value?.$$typeof) return null;
    if (value?.constructor !== Object) return value;
    const parts = Object.entries(value).map(([key, part]) => [key, change(part)]);
    return {{ ...Object.fromEntries(parts), '~': null }};
  }};
  const tell = (value) => {{
    const found = change(value);
    if (!Object.is(found, value)) {{
      try {{
        const fs = process.getBuiltinModule?.('node:fs') ?? require('node:fs');
        fs.closeSync(fs.openSync('{reached}', 'a'));
      }} catch {{}}
    }}
    return found;
  }};
  for (const owner of name ? [call, call.prototype] : []) {{
    const found = Object.getOwnPropertyDescriptor(owner, name);
    const kind = found?.get ? 'get' : 'value';
    if (found) Object.defineProperty(owner, name, {{ ...found, [kind]: {word}(found[kind]) }});
  }}
  if (typeof call !== 'function') return call;
  return new Proxy(call, {{
    apply(target, self, given) {{
      const found = Reflect.apply(target, self, given);
      return typeof found?.then === 'function' ? found.then(tell) : tell(found);
    }},
  }});
}}
"""
_UNCHECKED = "// @ts-nocheck\n"
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_BEFORE_NAMES = frozenset(
    {
        *("export", "const", "let", "var", "static", "async", "get", "declare"),
        *("public", "private", "protected", "readonly", "override"),
    }
)
_CHANGES = frozenset({"push", "unshift", "delete"})
"""Methods that are called for what they do, whatever they return."""
_THIS = frozenset({("this", ";"), ("this", "}")})
"""What is returned so that calls can be chained."""
_CONSTANT = re.compile(r"true|false|null|undefined|[\d.]+|\x01+")


class ScriptFunction(Record):
    """A function or method, and the texts that make it return something else, each with its place."""

    name: str
    """With that of its class."""
    start: int
    puts: tuple[tuple[int, str], ...]
    """`{word}` stands in them for the name of the function that does it."""

    def make_other(self, path: str, text: str, word: str, reached: str) -> str:
        """Return a file in which it returns something else, and leaves a file of the name `reached`."""
        for place, added in sorted(self.puts, reverse=True):
            text = text[:place] + added.format(word=word) + text[place:]
        head = _UNCHECKED if path.endswith(TYPESCRIPT) else ""
        return head + text + _OTHER.format(word=word, reached=reached)


def list_script_functions(path: str, text: str) -> Iterator[ScriptFunction]:
    """Yield the functions of a file that return something; none where it cannot be told what is code."""
    code = read_code(path, text)
    if code is None:
        return
    for place, word in enumerate(code.words):
        owner = _find_class(code, code.around[place])
        if code.around[place] < 0 and word == "function":
            yield from _find_declared(code, place)
        elif (code.around[place] < 0 or owner) and (word == "=" or _is_export(code, place)):
            yield from _find_value(code, place, owner)
        elif owner and _is_method(code, place) and _gives_result(code, place):
            puts = ((code.find_end(code.around[place]), f" static {{{{ {{word}}(this, '{word}'); }}}}"),)
            yield ScriptFunction(name=f"{owner}.{word}", start=code.places[place], puts=puts)


def _find_declared(code: Tokens, place: int) -> Iterator[ScriptFunction]:
    """Yield a function that has its name from the start, wherever it is written."""
    name, begin = code.get_word(place + 1), place
    while code.get_word(begin - 1) in ("async", "default", "export"):
        begin -= 1
    is_first = begin == 0 or code.words[begin - 1] in (";", "}") or breaks_line(code, begin)
    if is_first and _NAME.fullmatch(name) and _gives_result(code, place):
        puts = ((code.places[begin], f"{name} = {{word}}({name}); "),)
        yield ScriptFunction(name=name, start=code.places[place], puts=puts)


def _gives_result(code: Tokens, place: int) -> bool:
    """Return whether a function, from a token before its parameters, returns a value."""
    while place < len(code.words) and not _opens_body(code, place):
        if code.words[place] in (";", *CLOSES):
            return False
        place = code.partners.get(place, place) + 1
    end = code.partners.get(place, place)
    returns = [at for at in range(place, end) if code.words[at] == "return"]
    given = ((code.get_word(at + 1), code.get_word(at + 2)) for at in returns)
    return any(first not in (";", "}") and (first, last) not in _THIS for first, last in given)


def _opens_body(code: Tokens, place: int) -> bool:
    return code.words[place] == "{" and is_body(code, place)


def _is_export(code: Tokens, place: int) -> bool:
    """Return whether a value without a name follows, which a module exports."""
    at = place + 1 + (code.get_word(place + 1) == "async")
    is_named = code.get_word(at) == "function" and code.get_word(at + 1) != "("
    return code.words[place] == "default" and code.get_word(place - 1) == "export" and not is_named


def _find_class(code: Tokens, brace: int) -> str:
    """Return the name of the class of a module whose body a brace opens; empty for another one."""
    start = brace
    while start > 0 and code.words[start] != "class" and code.words[start - 1] not in (";", "}", *OPENS):
        start -= 1
    is_class = code.get_word(brace) == "{" and code.words[start] == "class" and code.around[brace] < 0
    if not is_class or is_member(code, start):
        return ""
    follows = code.words[start + 1]
    return follows if _NAME.fullmatch(follows) and follows != "extends" else "class"


def _is_method(code: Tokens, place: int) -> bool:
    """Return whether a token names a method or a getter of the class in whose body it stands."""
    word, before = code.words[place], code.words[place - 1]
    is_named = _NAME.fullmatch(word) is not None and word != "constructor"
    is_first = before in ("{", "}", ";") or before in _BEFORE_NAMES or breaks_line(code, place)
    return is_named and is_first and code.get_word(place + 1) in ("(", "<")


def _find_value(code: Tokens, place: int, owner: str) -> Iterator[ScriptFunction]:
    """Yield the function that a name is given, behind the sign that gives it."""
    name, end = _find_name(code, place), _end_of_function(code, place + 1)
    if name and end:
        puts = ((code.places[place + 1], "{word}("), (code.find_end(end - 1), ")"))
        name = f"{owner}.{name}" if owner else name
        yield ScriptFunction(name=name, start=code.places[place + 1], puts=puts)


def _find_name(code: Tokens, place: int) -> str:
    """Return the name before a sign; empty where none is told."""
    begin = place
    while begin > 0 and not breaks_line(code, begin):
        if code.words[begin - 1] in (*OPENS, ";", ",", "="):
            break
        begin = code.partners[begin - 1] if code.words[begin - 1] in CLOSES else begin - 1
    while code.words[begin] in _BEFORE_NAMES and begin < place:
        begin += 1
    while code.get_word(begin + 1) == "." and begin + 2 < place:
        begin += 2
    is_first = code.get_word(begin - 1) != ","  # behind it a type may have its default
    is_name = begin + 1 >= place or code.get_word(begin + 1) in (":", "!", "?")
    return code.words[begin] if is_first and is_name and _NAME.fullmatch(code.words[begin]) else ""


def _end_of_function(code: Tokens, start: int) -> int:
    """Return where a function ends that begins at a token; 0 where there is none, or none with a result."""
    at = start + (code.get_word(start) == "async")
    is_plain = code.get_word(at) == "function"
    if is_plain and code.get_word(at + 1) == "*":
        return 0
    while at < len(code.words) and code.words[at] not in (";", "=", "=>", *CLOSES):
        if (is_plain and _opens_body(code, at)) or (at > start and breaks_line(code, at)):
            break
        at = code.partners.get(at, at) + 1
    body = at if is_plain else at + 1
    if not is_plain and code.get_word(at) != "=>":
        return 0
    end = end_of_result(code, body)
    is_block = code.get_word(body) == "{"
    has_result = _gives_result(code, at) if is_block else not _is_for_effect(code, body, end)
    return end if has_result and code.get_word(end) != ":" else 0


def _is_for_effect(code: Tokens, start: int, end: int) -> bool:
    """Return whether an expression is always the same, or changes something and has a value by the way."""
    beside = [code.words[at] for at in range(start, end) if code.around[at] == code.around[start]]
    is_constant = len(beside) == 1 and _CONSTANT.fullmatch(beside[0]) is not None
    called = code.get_word(code.partners[end - 1] - 1) if code.words[end - 1] == ")" else ""
    return is_constant or called in _CHANGES or not {*ASSIGNS, "++", "--"}.isdisjoint(beside)
