from collections.abc import Collection

import pytest

from agentflow.languages.grammars import GRAMMARS
from agentflow.mutants.operators import (
    Grade,
    Mutant,
    Operator,
    list_elements,
    list_look_alikes,
    list_mutants,
    list_unreadable,
    list_untouched,
)

PYTHON = '''"""Pages."""
import math


def pages(items, size=10, *, strict=False):
    """Return the number of pages."""
    if size <= 0 or not items:
        raise ValueError("size must be positive")
    count = 0
    for part in chunk(items, size):
        count += 1
        log.info("part %s", part)
    try:
        total: "int" = math.ceil(len(items) / size)
    except TypeError:
        total = 0
    items.sort(key=None)
    return total if strict else max(count, total)
'''
EDITS = {
    "a.py": (
        PYTHON,
        """False → True
size <= 0 or not items → False
size <= 0 or not items → size <= 0
or → and
<= → >
<= → <
not items → items
raise ValueError("size must be positive") → (left out)
count += 1 → (left out)
+= → -=
chunk(items, size) → items
, size → (left out)
/ → *
len(items) / size → size
error passed on
items.sort(key=None) → (left out)
strict → True
10 → 11
one round only""",
    ),
    "a.js": (
        """export function f(a, b = 1) {
  if (a === b && !a.x) { throw new Error('no'); }
  for (const c of a) { b += g(c, 2); }
  return b ? 'x' : `y`;
}
""",
        """=== → !==
&& → ||
a === b && !a.x → true
!a.x → a.x
throw new Error('no'); → (left out)
+= → -=
g(c, 2) → c
b → false
'x' → ""
one round only
b += g(c, 2); → (left out)""",
    ),
    "a.ts": (
        """class A {
  get(a: number, b: 'x' | 'y'): boolean {
    return a > 1 && b !== 'x';
  }
}
""",
        """> → <=
> → >=
&& → ||
!== → ===
1 → 2
a > 1 && b !== 'x' → undefined""",
    ),
    "a.tsx": (
        """const A = (p: P) => <b>{p.n > 1 ? p.n * 2 : 0}</b>;
""",
        """p.n > 1 → true
* → /
p.n * 2 → 2""",
    ),
    "a.go": (
        """package a
func F(a int) (int, error) {
	if a < 1 || b {
		return 1, errors.New("x")
	}
	for i := 0; i < 3; i++ {
		x += f(i)
	}
	defer c()
	return a << 2, nil
}
""",
        """a < 1 || b → true
|| → &&
a < 1 || b → b
i < 3 → false
x += f(i) → (left out)
defer c() → (left out)
<< → >>
f(i) → i
one round only""",
    ),
    "a.rs": (
        """fn f(a: u8) -> u8 {
    if a == 1 && !b { g(a)?; }
    while a != 2 { a -= 1; }
    println!("{}", a == 3);
    a + 1
}
""",
        """a == 1 && !b → false
&& → ||
!b → b
g(a)?; → (left out)
a -= 1; → (left out)
-= → +=
+ → -""",
    ),
    "a.c": (
        """int f(int a, char *b) {
  if (a >= 2 || !b) return g(a, 1);
  while (a--) { b[0] = 'x'; }
  printf("%d", a);
  return a % 2 ? 1 : 0;
}
""",
        """a >= 2 || !b → 1
|| → &&
!b → b
% → *
g(a, 1) → a
b[0] = 'x'; → (left out)
a % 2 → 0""",
    ),
    "a.cpp": (
        """bool A::f(int a) {
  if (a == 1) { this->g(a); }
  return a < 3 && true;
}
""",
        """a == 1 → true
this->g(a); → (left out)
&& → ||
true → false
< → >=""",
    ),
    "A.java": (
        """class A {
  int f(int a) {
    if (a == 1) { throw new E("x"); }
    for (int i : b) { c.add(i); }
    return a > 2 ? a - 1 : 0;
  }
}
""",
        """a == 1 → false
throw new E("x"); → (left out)
c.add(i); → (left out)
a > 2 → true
- → +
a - 1 → (1) - (a)""",
    ),
    "a.rb": (
        """def f(a)
  return 1 if a == 2 && b
  a += 1
  raise E, 'no' unless z
  g(a)
end
""",
        """a == 2 && b → true
&& → ||
a += 1 → (left out)
+= → -=
z → false
g(a) → nil
== → !=""",
    ),
    "a.sh": (
        """f() {
  if [ "$1" -lt 2 ]; then
    rm "$1"
  fi
  a=$((b + 1))
  test -n "$a" && go "$a"
}
""",
        """-lt → -ge
-lt → -le
&& → ||
+ → -
[ "$1" -lt 2 ] → true
rm "$1" → (left out)""",
    ),
}
"""For a file of each language, edits that there have to be, one a line."""


def find_edits(path: str, text: str, lines: Collection[int] = range(1, 100)) -> dict[str, Mutant]:
    found = list_mutants(path, text, lines)
    assert found is not None
    return {each.describe().partition("  ")[2]: each for each in found}


@pytest.mark.parametrize("path", EDITS)
def test_each_language_has_the_mutants_of_the_table(path: str) -> None:
    text, wanted = EDITS[path]
    assert set(wanted.split("\n")) - find_edits(path, text).keys() == set()


def test_each_grammar_is_tried_above() -> None:
    suffixes = {path[path.rindex(".") :] for path in EDITS}
    assert [each.name for each in GRAMMARS if suffixes.isdisjoint(each.suffixes)] == []


def test_what_no_test_has_to_notice_is_left_alone() -> None:
    found = find_edits("a.py", PYTHON)
    touched = " ".join(found)
    assert {'"int"', 'log.info("part %s", part)', '"part %s"'}.isdisjoint(
        each.before for each in found.values()
    )
    assert not any(
        each.before.startswith('"""')
        for each in found.values()
        if each.operator in (Operator.TEXT, Operator.PROSE)
    )
    assert '"size must be positive" →' not in touched
    assert 'ValueError("size must be positive") → "size' not in touched


def test_every_python_mutant_is_a_program() -> None:
    for each in find_edits("a.py", PYTHON).values():
        compile(each.apply(PYTHON), "a.py", "exec")


def test_only_changed_lines_are_mutated() -> None:
    assert {each.line for each in find_edits("a.py", PYTHON, {11}).values()} == {11}


def test_moved_bounds_and_numbers_are_weak() -> None:
    found = find_edits("a.py", PYTHON)
    assert found["<= → <"].grade is found["10 → 11"].grade is Grade.WEAK
    assert found["<= → >"].grade is Grade.STRONG


def test_a_comparison_that_is_a_value_always_holds_or_never() -> None:
    for path, text in (
        ("a.py", "def f(a):\n    return g(a < 3)\n"),
        ("a.js", "f = (a) => g(a < 3);\n"),
        ("a.go", "package p\n\nfunc f(a int) bool {\n\treturn g(a < 3)\n}\n"),
    ):
        assert {edit.lower() for edit in find_edits(path, text)} >= {"a < 3 → true", "a < 3 → false"}


LOOPS = {
    "a.py": "def f(n):\n    for i in range(9):\n        g(max(n))\n",
    "a.js": "function f(n) {\n  for (let i = 0; i < 9; i++) { g(Math.max(n, i)); }\n}\n",
    "a.go": "package p\n\nfunc f(n int) {\n\tfor i := 0; i < 9; i++ {\n\t\tg(max(n, i))\n\t}\n}\n",
    "a.rs": "fn f(n: i32) {\n    for i in 0..9 {\n        g(n.max(i));\n    }\n}\n",
    "a.c": "void f(int n) {\n    for (int i = 0; i < 9; i++) {\n        g(max(n, i));\n    }\n}\n",
    "A.java": "class A {\n  void f(int n) {\n    for (int i = 0; i < 9; i++) g(Math.max(n, i));\n  }\n}\n",
    "a.rb": "def f(n)\n  9.times { |i| g([n, i].max(1)) }\nend\n",
}


@pytest.mark.parametrize("path", LOOPS)
def test_a_bounded_loop_has_one_round_more_and_a_function_its_opposite(path: str) -> None:
    found = find_edits(path, LOOPS[path])
    assert {found[edit].grade for edit in ("9 → 10", "max → min")} == {Grade.STRONG}


@pytest.mark.parametrize(
    ("path", "text", "words", "edits"),
    [
        ("a.go", "package a\n\nvar b = len(c)\n", "at most n characters", ['len(c) → len([]rune("" + c))']),
        ("a.go", "package a\n\nvar b = len(c)\n", "at most n bytes", []),
        ("a.go", 'package a\n\nvar b = s.TrimLeft(c, "v")\n', "without the prefix", ['s.TrimPrefix(c, "v")']),
        ("a.rs", "fn b() -> usize {\n    c.len()\n}\n", "of letters", ["c.len() → c.chars().count()"]),
        ("a.py", "b = round(c / 2)\n", "rounded up", ["round(c / 2) → int(c / 2 + 0.5)"]),
        ("a.py", "b = round(c, 2)\n", "rounded up", []),
        ("a.py", 'b = c.lstrip("v.")\n', "no prefix", ['c.lstrip("v.") → c.removeprefix("v.")']),
        ("a.js", "a = b.sort()\n", "from the lowest", ["b.sort() → b.sort((a, b) => a - b)"]),
        ("a.ts", "a = b.replace(' ', c)\n", "for each blank", ["→ b.replaceAll(' ', c)"]),
        ("a.ts", "a = b.c || 10\n", "by default 10", ["b.c || 10 → (b.c ?? 10)"]),
        ("a.js", "a = typeof b === 'object'\n", "null is none", ["=== 'object' && b !== null)"]),
        ("a.py", "b = c * 19 // 100\n", "to the nearest cent", ["((c * 19 + 100 // 2) // 100)"]),
        ("a.c", "int a = b % 7;\n", "also a negative one", ["((b % 7 + 7) % 7)"]),
        ("a.py", "b = dict(c)\n", "a copy of c", ['dict(c) → __import__("copy").deepcopy(c)']),
    ],
)
def test_a_look_alike_is_used_where_the_task_speaks_of_what_tells_them_apart(
    path: str, text: str, words: str, edits: list[str]
) -> None:
    found = list_look_alikes(path, text, range(1, 4), words)
    told = [each for each in found if each.operator is Operator.LOOK_ALIKE]
    assert all(each.describe().endswith(edit) for each, edit in zip(told, edits, strict=True))


@pytest.mark.parametrize(
    ("path", "text", "edit"),
    [
        ("a.ts", "a = b.c || 10\n", "b.c || 10 → (b.c ?? 10)"),
        ("a.py", "b = c or 10\n", "c or 10 → (10 if c is None else c)"),
        ("a.js", "a = parseInt(b, 10)\n", "parseInt(b, 10) → Number(b)"),
        ("a.rs", "fn f(a: i32) -> u8 {\n    a as u8\n}\n", "a as u8 → <u8>::try_from(a).unwrap()"),
        (
            "A.java",
            "class A {\n  String[] f() { return a.split(b); }\n}\n",
            "a.split(java.util.regex.Pattern.quote(b))",
        ),
        ("a.c", "int a(void) {\n  strncpy(b, c, 4);\n}\n", "(strncpy(b, c, 4), (b)[(4) - 1] = 0)"),
        ("a.sh", "f() {\n  cp $1 b\n}\n", '$1 → "$1"'),
        ("a.sh", "f() {\n  for a in $*; do b; done\n}\n", '$* → "$@"'),
    ],
)
def test_a_look_alike_that_no_task_speaks_of_is_weak(path: str, text: str, edit: str) -> None:
    (found,) = list_look_alikes(path, text, range(1, 4), "add it")
    assert (found.operator, found.grade) == (Operator.OTHER_ALIKE, Grade.WEAK)
    assert found.describe().endswith(edit)


ALTERED = {
    "a.py": "def f(a: list[int], b, *c):\n    '''F.'''\n    b = [*b]\n    a.sort()\n    b.sort()\n"
    "    def g(self):\n        self[0] = 1\n",
    "a.js": "function f(a, ...b) {\n  const c = [...a];\n  b.sort(); c.sort(); a.sort();\n}\n",
    "a.ts": "const f = (a: number[]) => {\n  a.sort();\n};\n",
    "a.go": "package p\n\nfunc f(a []int) []int {\n\treturn append(a[:1], a[2:]...)\n}\n",
    "A.java": "class A {\n  void f(List<Integer> a) { a.sort(null); }\n}\n",
}


@pytest.mark.parametrize("path", ALTERED)
def test_an_argument_that_a_function_changes_is_copied_first(path: str) -> None:
    made = list_mutants(path, ALTERED[path], range(1, 9)) or ()
    (mutant,) = (each for each in made if each.operator is Operator.OWN_COPY)
    assert mutant.describe().endswith("a copy of a changed in its place")
    assert mutant.grade is Grade.STRONG


def test_how_much_room_is_taken_is_left_alone() -> None:
    found = find_edits("a.c", "char *f(char *a) {\n  return malloc(strlen(a) + 1);\n}\n")
    assert [each.before for each in found.values() if "strlen" in each.before] == [
        "malloc(strlen(a) + 1)"
    ] * 2


def test_a_value_that_is_empty_already_is_left_alone() -> None:
    head = "package p\n\nfunc wait(n int) time.Duration {\n\treturn "
    assert "time.Duration(0) → *new(time.Duration)" not in find_edits("a.go", f"{head}time.Duration(0)\n}}\n")
    assert "after(0) → *new(time.Duration)" in find_edits("a.go", f"{head}after(0)\n}}\n")


def test_a_function_of_another_language_returns_its_default() -> None:
    assert "a + 1 → {}" in find_edits("a.cpp", "int f(int a) {\n  return a + 1;\n}\n")


EVALUATED = {
    "a.py": "def f(n):\n    return eval('n if n < 9 else 0')\n",
    "a.js": "function f(n) {\n  return eval('n < 9 ? n : 0');\n}\n",
    "a.ts": "function f(n: number) {\n  return new Function('n', 'return n')(n);\n}\n",
    "a.rb": "def f(n)\n  instance_eval('n')\nend\n",
    "a.sh": 'f() {\n  eval "echo $1"\n}\n',
}


@pytest.mark.parametrize("path", EVALUATED)
def test_code_in_a_text_cannot_be_read(path: str) -> None:
    assert list_unreadable(path, EVALUATED[path], range(1, 4)) == (2,)


def test_a_collection_that_code_fills_is_emptied() -> None:
    found = find_edits("a.py", "BIG = {k: 0 for k in range(9)}\nALL = [k for k in BIG]\n")
    assert {edit for edit in found if edit.endswith(("→ {}", "→ []"))} == {
        "{k: 0 for k in range(9)} → {}",
        "[k for k in BIG] → []",
    }


BESIDE = {
    "a handler of all errors": (
        "a.py",
        "try:\n    f()\nexcept Exception as error:\n    g()\n",
        "Exception → OSError",
        True,
    ),
    "a handler of one": ("a.py", "try:\n    f()\nexcept KeyError:\n    g()\n", "KeyError → OSError", False),
    "the place of a text": ("a.py", "x = s.find('a')\n", "find → rfind", True),
    "whether a text is there": ("a.py", "x = s.find('a') == -1\n", "find → rfind", False),
    "the same of JavaScript": ("a.js", "x = s.indexOf('a') >= 0;\n", "indexOf → lastIndexOf", False),
    "a promise in a try": (
        "a.js",
        "async function f() {\n  try { return g(); } catch (e) { h(e); }\n}\n",
        "g() → await g()",
        True,
    ),
    "a promise outside of one": (
        "a.js",
        "async function f() {\n  return g();\n}\n",
        "g() → await g()",
        False,
    ),
    "an error that is swallowed": (
        "a.rs",
        "fn f(s: &str) -> u32 {\n    s.parse().unwrap_or_default()\n}\n",
        "unwrap_or_default → unwrap",
        True,
    ),
    "words of an error": ("a.js", "let last = new RangeError('none');\n", "'none' → \"\"", False),
    "words of an error of Python": ("a.py", "last = MyError('none')\n", "'none' → \"\"", False),
    "words of an error of Rust": (
        "a.rs",
        'fn f(s: &str) -> R {\n    s.parse().map_err(|e| format!("no {e}"))\n}\n',
        'format!("no {e}") → Default::default()',
        False,
    ),
}


@pytest.mark.parametrize("name", BESIDE)
def test_what_stands_beside_an_edit_decides_whether_a_test_could_notice(name: str) -> None:
    path, text, edit, is_made = BESIDE[name]
    assert any(edit in each.replace("  ", " ") for each in find_edits(path, text)) is is_made


HEADS = {
    "a.py": "async def f(\n    a,\n):\n    g.x = 1\n",
    "a.js": "export default function f(\n  a,\n) {\n  x: y;\n}\n",
    "a.go": "package p\n\nfunc f(\n\ta int,\n) {\n}\n",
    "a.rs": "pub fn f(\n    a: i32,\n) {\n}\n",
    "A.java": "class A {\n  public static void f(\n    int a\n  ) {\n  }\n}\n",
}


@pytest.mark.parametrize("path", HEADS)
def test_the_head_of_a_function_is_no_code_that_nobody_tries(path: str) -> None:
    text = HEADS[path]
    lines = [at for at, row in enumerate(text.splitlines(), 1) if row.strip() and "class" not in row]
    assert not any("f(" in row or " a" in row for row in list_untouched(path, text, lines))


TYPED = "class A {\n  f(a: string | null): readonly string[] {\n    return g<string>(a);\n  }\n}\n"


def test_types_of_typescript_are_no_code_that_nobody_tries_unless_a_decorator_is_told_them() -> None:
    assert list_untouched("a.ts", TYPED, [2, 3]) == ()
    assert ": readonly string[]" in list_untouched("a.ts", f"@Injectable()\n{TYPED}", [3, 4])


def test_an_edit_counts_bytes_and_not_letters() -> None:
    text = "été = größe + b\n"
    assert find_edits("a.py", text)["+ → -"].apply(text) == "été = größe - b\n"


def test_lines_that_no_grammar_reads_are_told_and_left_alone() -> None:
    text = "def f(:\n    return 1\n\n\ndef g(a):\n    return a + 1\n"
    assert 1 in list_unreadable("a.py", text, range(1, 10))
    assert 6 in {each.line for each in find_edits("a.py", text).values()}


def test_a_file_of_another_language_has_no_mutants() -> None:
    assert list_mutants("a.awk", "{ print }", {1}) is None


@pytest.mark.parametrize(
    ("path", "before", "after", "wanted"),
    [
        ("a.py", 'ENDS = (".py", ".pyi")\n', 'ENDS = (".py", ".pyi", ".pyw")\n', ['".pyw"', ', ".pyw"']),
        ("a.js", "const table = { a: 1 };\n", "const table = { a: 1, b: 2 };\n", ["2", ", b: 2"]),
        ("a.py", "SIZES = [1, 2]\n", "SIZES = [1, 2, 2]\n", [", 2", "2"]),
    ],
)
def test_elements_that_stood_there_are_left_alone(
    path: str, before: str, after: str, wanted: list[str]
) -> None:
    stood = list_elements(path, before, [1])
    found = [each.before for each in list_mutants(path, after, [1], stood) or ()]
    assert sorted(each for each in found if "=" not in each) == sorted(wanted)


def test_an_element_that_came_from_another_list_is_new_and_of_a_list_that_lost_one_each_is_tried() -> None:
    stood = list_elements("a.py", "A = [1, 2]\nB = [3]\n", [1, 2])
    assert stood == [["1", "2"], ["3"]]
    found = list_mutants("a.py", "A = [1]\nB = [3, 2]\n", [1, 2], stood) or ()
    assert {(each.line, each.before) for each in found if "=" not in each.before} >= {(1, "1"), (2, "2")}
    assert not any(each.before == "3" for each in found)
    moved = list_mutants("a.py", "A = [2, 1]\n", [1], [["1", "2"]]) or ()
    assert {each.before for each in moved} >= {"1", "2"}
