"""New functions of Go, and how one of them is made to return something else."""

import re
from collections.abc import Iterator

from agentflow.core.record import Record
from agentflow.verdict.diff.go_conditions import find_go_block
from agentflow.verdict.probes.recording import frame_go
from agentflow.verdict.tokens import Tokens, read_code

_IMPORTS = '; import ({word}os "os"; {word}reflect "reflect"; {word}unsafe "unsafe")'
_OTHER = """
var {word}at, _ = {word}os.Getwd()
var {word}kind = {word}reflect.TypeOf((*error)(nil)).Elem()

func {word}(results ...interface{{}}) {{
	last := {word}reflect.ValueOf(results[len(results)-1]).Elem()
	if len(results) > 1 && last.Type() == {word}kind {{
		if !last.IsNil() {{
			return
		}}
		results = results[:len(results)-1]
	}}
	isOther := false
	for _, each := range results {{
		isOther = {word}other({word}reflect.ValueOf(each).Elem()) || isOther
	}}
	if isOther {{
		if file, err := {word}os.Create({word}at + "/{reached}"); err == nil {{
			file.Close()
		}}
	}}
}}

func {word}other(value {word}reflect.Value) bool {{
	switch kind := value.Kind(); {{
	case kind == {word}reflect.Bool:
		value.SetBool(!value.Bool())
	case value.CanInt() && value.Int() < 0:
		value.SetInt(1)
	case value.CanInt():
		value.SetInt(value.Int() + value.Int()/2 + 1)
	case value.CanUint():
		value.SetUint(value.Uint() + value.Uint()/2 + 1)
	case value.CanFloat() && value.Float() < 0:
		value.SetFloat(1)
	case value.CanFloat():
		value.SetFloat(value.Float()*1.5 + 1)
	case kind == {word}reflect.String:
		value.SetString(value.String() + "~")
	case kind == {word}reflect.Slice:
		more := {word}reflect.MakeSlice(value.Type(), value.Len()+1, value.Len()+1)
		for at, known := 0, {word}reflect.Copy(more, value); at < known; at++ {{
			{word}other(more.Index(at))
		}}
		value.Set(more)
	case kind == {word}reflect.Map:
		more := {word}reflect.MakeMap(value.Type())
		for _, key := range value.MapKeys() {{
			part := {word}reflect.New(value.Type().Elem()).Elem()
			part.Set(value.MapIndex(key))
			if {word}other(part) {{
				more.SetMapIndex(key, part)
			}}
		}}
		if more.Len() == value.Len() {{
			more.SetMapIndex({word}reflect.Zero(value.Type().Key()), {word}reflect.Zero(value.Type().Elem()))
		}}
		value.Set(more)
	case kind == {word}reflect.Array || kind == {word}reflect.Struct:
		return {word}parts(value)
	case kind == {word}reflect.Ptr || kind == {word}reflect.Func || kind == {word}reflect.Interface:
		if value.IsNil() {{
			return false
		}}
		value.Set({word}reflect.Zero(value.Type()))
	default:
		return false
	}}
	return true
}}

func {word}parts(value {word}reflect.Value) bool {{
	isOther := false
	if value.Kind() == {word}reflect.Array {{
		for at := 0; at < value.Len(); at++ {{
			isOther = {word}other(value.Index(at)) || isOther
		}}
		return isOther
	}}
	for at := 0; at < value.NumField(); at++ {{
		part := value.Field(at)
		part = {word}reflect.NewAt(part.Type(), {word}unsafe.Pointer(part.UnsafeAddr())).Elem()
		isOther = {word}other(part) || isOther
	}}
	return isOther
}}
"""
"""Numbers grow, so that a test which only wants one above another does not notice; a pointer becomes nil.

So does an error that is the only result. Beside another result it stays, and so does that where there is one.
"""
_LEFT_ALONE = frozenset({"Error", "Write"})
"""Methods whose results hardly any caller looks at, as rightly as it may be."""
_CONSTANT = r"(?:-?\d[\w.]*|\"[^\"\n]*\"|true|false|nil)"
_CONSTANTS = re.compile(rf"{_CONSTANT}(?:, {_CONSTANT})*")
_RETURN = re.compile(r"\breturn\b[ \t]*([^\n;}]*)")
_Edit = tuple[int, int, str]
"""Two places, and the text that stands between them instead."""
_NO_NAMES = frozenset({"map", "chan", "func", "interface", "struct"})


class GoFunction(Record):
    """A function or method, by its tokens."""

    name: str
    text: str
    line: int
    end: int
    start: int
    """The first token of its results; the brace of its body where it has none."""
    body: int
    is_fluent: bool
    """It returns a pointer of the kind that it is called on."""

    @property
    def tells(self) -> bool:
        """Return whether it has results that its callers look at, other ones from call to call."""
        given = {found[1].strip() for found in _RETURN.finditer(self.text)}
        is_constant = len(given) == 1 and all(map(_CONSTANTS.fullmatch, given))
        is_quiet = self.name.rpartition(".")[2] in _LEFT_ALONE or self.is_fluent
        return self.start < self.body and not (is_quiet or is_constant)


def list_go_functions(path: str, text: str) -> Iterator[GoFunction]:
    """Yield the functions and methods of a file that have a body."""
    code = read_code(path, text)
    for place in code.find_places("func") if code else ():
        assert code is not None
        body = find_go_block(code, place)
        if body and text[code.places[place] - 1 : code.places[place]] in ("", "\n"):
            yield _read_function(code, place, body)


def _read_function(code: Tokens, place: int, body: int) -> GoFunction:
    at, owner = place + 1, ""
    if code.words[at] == "(":
        owner = code.text[code.find_end(at) : code.places[code.partners[at]]].split()[-1]
        at = code.partners[at] + 1
    name, at = code.words[at], at + 1
    at = code.partners[at] + 1 if code.words[at] == "[" else at
    start = code.partners[at] + 1
    given = code.text[code.places[start] : code.places[body]].strip(" ()\n\t")
    kind = re.sub(r"\[.*|\*", "", owner)
    begin, end = code.places[place], code.find_end(code.partners[body])
    return GoFunction(
        name=f"{kind}.{name}" if owner else name,
        text=code.text[begin:end],
        line=code.text.count("\n", 0, begin) + 1,
        end=code.text.count("\n", 0, end) + 1,
        start=start,
        body=body,
        is_fluent=owner.startswith("*") and given == owner,
    )


def return_other(path: str, text: str, line: int, word: str, reached: str) -> str:
    """Return a file in which the function that begins on a line returns something else."""
    code = read_code(path, text)
    function = next(each for each in list_go_functions(path, text) if each.line == line)
    assert code is not None
    edits, names = _name_results(code, function, word)
    call = f" defer {word}({', '.join(f'&{name}' for name in names)});"
    edits.append((code.find_end(function.body), code.find_end(function.body), call))
    for start, end, put in reversed(edits):
        text = text[:start] + put + text[end:]
    return frame_go(path, text, _IMPORTS.format(word=word), _OTHER.format(word=word, reached=reached))


def _name_results(code: Tokens, function: GoFunction, word: str) -> tuple[list[_Edit], list[str]]:
    """Return what is put into a file so that each result of a function has a name, and the names."""
    start, body = function.start, function.body
    if code.words[start] != "(":
        first, last = code.places[start], code.find_end(body - 1)
        return [(first, first, f"({word}0 "), (last, last, ")")], [f"{word}0"]
    closing = code.partners[start]
    commas = [at for at in range(start, closing) if code.words[at] == "," and code.around[at] == start]
    ends = [*commas, closing]
    parts = [(begin + 1, end) for begin, end in zip([start, *commas], ends, strict=True) if begin + 1 < end]
    is_named = any(_has_name(code, *part) for part in parts)
    edits, names = list[_Edit](), list[str]()
    for number, (begin, _) in enumerate(parts):
        own, place = code.words[begin], code.places[begin]
        names.append(own if is_named and own != "_" else f"{word}{number}")
        if not is_named or own == "_":
            end = place + is_named
            edits.append((place, end, names[-1] + " " * (not is_named)))
    return edits, names


def _has_name(code: Tokens, begin: int, end: int) -> bool:
    """Return whether a result is a name and a type, and no type alone."""
    word, follows = code.words[begin], code.get_word(begin + 1)
    is_name = re.fullmatch(r"[^\W\d]\w*", word) is not None and word not in _NO_NAMES
    is_generic = follows == "[" and code.partners[begin + 1] == end - 1
    return is_name and begin + 1 < end and follows != "." and not is_generic
