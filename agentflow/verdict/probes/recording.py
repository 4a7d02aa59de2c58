"""Changed code of other languages than Python that records which conditions and arms its tests try."""

import json
import re
from collections.abc import Iterable, Iterator

from agentflow.core.languages import C_FAMILY, GO, RUST, SCRIPTS, SHELL, TYPESCRIPT
from agentflow.verdict.diff.conditions import IT, Asks, Spot, find_spots, is_on
from agentflow.verdict.diff.go_conditions import find_go_spots
from agentflow.verdict.diff.script_omissions import find_omissions
from agentflow.verdict.diff.script_parts import find_script_parts
from agentflow.verdict.diff.shell_parts import ShellSpot, find_shell_spots
from agentflow.verdict.probes.branches import Branch, Watched
from agentflow.verdict.probes.breaking import find_changed_lines
from agentflow.verdict.probes.choices import shorten
from agentflow.verdict.tokens import blank_out, read_code, split_program
from agentflow.workspace.mixed_tree import ChangedTexts

_RECORDED = (*C_FAMILY, *GO, *SCRIPTS, *RUST, *SHELL)
_Insertion = tuple[int, int, int, int, str]
"""The place of a text that is put in, three numbers that order those of one place, and the text."""
_C = """\
extern {c}int creat(const char *, unsigned int);
extern {c}int close(int);
extern {c}char *getcwd(char *, unsigned long);
static char {word}_at[5000];
static unsigned char {word}_seen[{most}][3];
static int {word}(int part, int value) {{
    char path[5100];
    const char *name = "/{word}-";
    int at = 0, from = 0, file, digits = 10000, which = value < 0 ? 2 : value != 0;
    if ({word}_seen[part - {load}][which]) return value;
    {word}_seen[part - {load}][which] = 1;
    while ({word}_at[at]) {{ path[at] = {word}_at[at]; at++; }}
    while (name[from]) path[at++] = name[from++];
    while (digits > 1 && part < digits) digits /= 10;
    for (; digits; digits /= 10) path[at++] = (char)('0' + part / digits % 10);
    path[at++] = '-';
    path[at++] = "01r"[which];
    path[at] = 0;
    file = creat(path, 0600);
    if (file >= 0) close(file);
    return value;
}}
__attribute__((constructor)) static void {word}_load(void) {{
    if (getcwd({word}_at, 5000)) {word}({load}, -1);
}}
#line 1
"""
_SCRIPT = """
function {word}{typed} {{
  try {{
    var seen = {word}.seen || ({word}.seen = {{}}), isTrue = asks === '{absence}' ? value == null : value;
    if (test) isTrue = test(value);
    var isBoth = asks === '{booleans}' && typeof value !== 'boolean';
    var isApart = asks === '{order}' && !Object.is(value[0], value[1]);
    var order = isApart ? (value[0] < value[1] ? '1' : '0') : '', found = isBoth ? '01' : isTrue ? '1' : '0';
    var ends = arguments.length < 2 || asks === '{end}' ? 'r' : asks === '{order}' ? order : found;
    ends.split('').forEach(function (end) {{
      if (seen[part + end]) return;
      seen[part + end] = true;
      var place = /(?:file:\\/\\/|\\()(\\/[^\\n]*?):\\d+:\\d+/.exec(new Error().stack);
      var file = typeof __filename === 'string' ? __filename : place ? decodeURI(place[1]) : '';
      var at = file.endsWith({file}) ? file.slice(0, file.lastIndexOf('/')) : process.cwd();
      var fs = process.getBuiltinModule ? process.getBuiltinModule('fs') : require('fs');
      ['{load}-r', part + '-' + end].forEach(function (left) {{
        fs.closeSync(fs.openSync(at + '/{word}-' + left, 'a'));
      }});
    }});
  }} catch (error) {{}}
  return value;
}}
{word}({load});
"""
_UNTYPED = "(part, value, asks, test)"
_TYPED = "<T>(part: number, value?: T, asks?: string, test?: (it: T) => unknown): T"
_UNCHECKED = "// @ts-nocheck\n"
"""Keeps the compiler from complaining of types that calls hide from it; it stands on the first line."""
_RUST = """
#[allow(dead_code)]
fn {word}(part: usize, value: Option<bool>) -> bool {{
    const NO: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    static SEEN: [std::sync::atomic::AtomicBool; 3 * {most}] = [NO; 3 * {most}];
    let which = value.map_or(2, usize::from);
    if !SEEN[3 * (part - {load}) + which].swap(true, std::sync::atomic::Ordering::Relaxed) {{
        let folder = env!("CARGO_MANIFEST_DIR");
        let _ = std::fs::File::create(format!("{{folder}}/{word}-{load}-r"));
        let _ = std::fs::File::create(format!("{{folder}}/{word}-{{part}}-{{}}", ["0", "1", "r"][which]));
    }}
    value.unwrap_or(true)
}}
"""
_GO_IMPORTS = '; import ({word}os "os"; {word}strconv "strconv"; {word}atomic "sync/atomic")'
_GO_PACKAGE = re.compile(r"(?m)^package[ \t]+\w+")
_GO = """
var {word}at, _ = {word}os.Getwd()
var {word}seen [3 * {most}]uint32

func {word}leave(part int, which int) {{
	if {word}atomic.CompareAndSwapUint32(&{word}seen[3*(part-{load})+which], 0, 1) {{
		name := {word}at + "/{word}-" + {word}strconv.Itoa(part) + "-" + "01r"[which:which+1]
		if file, err := {word}os.Create(name); err == nil {{
			file.Close()
		}}
	}}
}}

func {word}ran(part int) {{ {word}leave(part, 2) }}

func {word}(part int, value bool) bool {{
	if value {{
		{word}leave(part, 1)
	}} else {{
		{word}leave(part, 0)
	}}
	return value
}}

func {word}fault(part int, found interface{{}}) interface{{}} {{
	{word}(part, found != nil)
	return found
}}

func init() {{ {word}leave({load}, 2) }}
"""
_GO_BOUND = """
type {word}order interface {{
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64 | ~string
}}

func {word}bound[T {word}order](part int, first, second T) (T, T) {{
	if first != second {{
		{word}(part, first < second)
	}}
	return first, second
}}
"""
"""Only where it is called: older versions of Go cannot read it, and know neither `min` nor `max`."""
_SHELL = """\
{word}_at=$PWD
case $0 in */{name}) {word}_at=$(cd "${{0%/*}}" && pwd) ;; esac
{word}() {{
    {{ true > "${word}_at/{word}-$1-${{2:-0}}"; }} 2>/dev/null || true
}}
{word}_filter() {{
    {word}_made=$(mktemp -d) || return
    {word}_part=$1
    shift
    head -c 9999999 > "${word}_made/in"
    {word}_code=0
    "$@" < "${word}_made/in" > "${word}_made/out" || {word}_code=$?
    {{ [ "$(cat "${word}_made/in")" = "$(cat "${word}_made/out")" ]; }} 2>/dev/null || {word} "${word}_part" 1
    cat "${word}_made/out"
    rm -r "${word}_made"
    return ${word}_code
}}
{word} {load} r
"""


def record_change(change: ChangedTexts, word: str, first: int) -> Watched | None:
    """Return changed code that records what is tried; None if there is nothing to try."""
    if not change.path.endswith(_RECORDED):
        return None
    is_shell = change.path.endswith(SHELL)
    found = find_shell_spots(change.after) if is_shell else _find_spots(change)
    lines, known = find_changed_lines(change), _bare(change.before)
    spots = [each for each in found if is_on(each, change.after, lines)]
    spots = [each for each in spots if not _is_known(change.after[slice(*each.around)], known)]
    if not spots:
        return None
    rows = list(enumerate(spots, first))
    parts = tuple(_tell(change, each) for each in spots)
    put = sorted(one for number, each in rows for one in _insert(change.path, each, number, word))
    text, end = "", 0
    for place, *_, added in put:
        text += change.after[end:place] + added
        end = place
    text = _frame(change, text + change.after[end:], word, first - 1, len(rows) + 1)
    return Watched(text=text, path=change.path, parts=parts, word=word, first=first)


def is_unreadable(path: str, text: str) -> bool:
    """Return whether a file could be recorded but for code that cannot be told from text."""
    read = split_program if path.endswith(SHELL) else read_code
    return path.endswith(_RECORDED) and read(path, text) is None


def _find_spots(change: ChangedTexts) -> Iterator[Spot]:
    code = read_code(change.path, change.after)
    if code is not None and code.is_go:
        yield from find_go_spots(code)
    elif code is not None:
        yield from (*find_script_parts(code), *find_omissions(code)) if code.is_script else find_spots(code)


def _is_known(text: str, known: str) -> bool:
    """Return whether a condition or an arm stood in the file before, or asks what is run as a program."""
    return "require.main === module" in text or _bare(text.strip()) in known


def _bare(text: str) -> str:
    return re.sub(r"\s+", " ", text)


def _tell(change: ChangedTexts, spot: Spot) -> Branch:
    line = change.after.count("\n", 0, spot.start) + 1
    text = " ".join(change.after[spot.start : spot.end].split())
    told = shorten(spot.told or text) + " == null" * (spot.asks is Asks.ABSENCE)
    return Branch(path=change.path, line=line, text="" if spot.is_arm else told, words=spot.words)


def _insert(path: str, spot: Spot, number: int, word: str) -> Iterable[_Insertion]:
    """Return what is put in before and behind a place; what is around others stands outside of them."""
    if isinstance(spot, ShellSpot):
        calls = {"call": f"{word} {number}", "filter": f"{word}_filter {number}"}
        return [(place, 1, 0, 0, text.format(**calls)) for place, text in spot.puts]
    before, behind = _words_for(path, spot, number, word)
    if spot.is_arm and not spot.closes:
        return ((spot.end, 1, 0, 0, before),)
    return (spot.start, 2, -spot.end, number, before), (spot.end, 0, -spot.start, -number, behind)


def _words_for(path: str, spot: Spot, number: int, word: str) -> tuple[str, str]:
    if path.endswith(C_FAMILY):
        return (f" {word}({number}, -1);", "") if spot.is_arm else (f"{word}({number}, !!(", "))")
    if path.endswith(GO):
        return _words_for_go(spot, number, word)
    if path.endswith(RUST):
        call = f"{word}({number}, None);"
        arm = (f"{{ {call} ", " }") if spot.closes else (f" {call}", "")
        return arm if spot.is_arm else (f"{word}({number}, Some(", "))")
    call = f"{word}({number})"
    if spot.test:
        it = f"{word}it"
        return f"{word}({number}, (", f"), '{spot.asks}', ({it}) => {spot.test.replace(IT, it)})"
    if spot.is_arm and not spot.closes and spot.asks is Asks.END:
        return f"; {call};", ""
    if spot.is_arm and spot.asks is Asks.TRUTH:
        return (f"({call}, ", ")") if spot.closes else (f" {call};", "")
    if spot.asks is Asks.ORDER:
        return f"...{word}({number}, [", f"], '{spot.asks}')"
    return f"{word}({number}, (", "))" if spot.asks is Asks.TRUTH else f"), '{spot.asks}')"


def _words_for_go(spot: Spot, number: int, word: str) -> tuple[str, str]:
    if spot.is_arm:
        return f" {word}ran({number});", ""
    names = {Asks.ORDER: "bound", Asks.FAULT: "fault"}
    if spot.asks in names:
        return f"{word}{names[spot.asks]}({number}, ", ")"
    return f"{word}({number}, bool(", "))"


def _frame(change: ChangedTexts, text: str, word: str, load: int, most: int) -> str:
    """Return a program with what its calls need; its lines keep their numbers."""
    names = {"word": word, "load": load, "most": most, "name": change.path.rpartition("/")[2]}
    if change.path.endswith(C_FAMILY):
        is_plain = change.path.endswith((".c", ".h"))
        return _C.format(**names, c="" if is_plain else '"C" ') + text
    if change.path.endswith(GO):
        added = _GO + _GO_BOUND * (f"{word}bound(" in text)
        return frame_go(change.path, text, _GO_IMPORTS.format(**names), added.format(**names))
    if change.path.endswith(RUST):
        return text + _RUST.format(**names)
    if change.path.endswith(SHELL):
        return _put_first(text, _SHELL.format(**names))
    is_typed = change.path.endswith(TYPESCRIPT)
    kinds = {
        "file": json.dumps(f"/{names['name']}"),
        "absence": Asks.ABSENCE,
        "end": Asks.END,
        "order": Asks.ORDER,
        "booleans": Asks.TRUTH_OF_BOOLEANS,
    }
    text += _SCRIPT.format(**names, **kinds, typed=_TYPED if is_typed else _UNTYPED)
    return _put_first(text, _UNCHECKED) if is_typed else text


def frame_go(path: str, text: str, imports: str, added: str) -> str:
    """Return a program of Go with imports behind its first clause, on the same line, and more at its end."""
    package = _GO_PACKAGE.search(blank_out(path, text) or "")
    end = package.end() if package else 0
    return text[:end] + imports + text[end:] + added


def _put_first(text: str, added: str) -> str:
    """Return a script with a text behind the line that names its program."""
    head, end, rest = text.partition("\n") if text.startswith("#!") else ("", "", text)
    return f"{head}{end}{added}{rest}"
