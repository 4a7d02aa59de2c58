"""A diff side by side: lines and numbers as in the files, each changed place with what the verdict says."""

from agentflow.core.evidence import Side, Surface
from agentflow.core.finding import Finding, FindingKind
from agentflow.core.verdict import Hunk, MutantEnd, MutantResult, Proof, ProofKind, Verdict
from agentflow.pages.diff import FileView, JudgedAs, arrange_diff
from agentflow.view.verdict import split_diff

DIFF = """diff --git a/calc.py b/calc.py
index 1..2 100644
--- a/calc.py
+++ b/calc.py
@@ -1,6 +1,8 @@ import sys
 def add(a, b):
-    return a - b
+    return a + b
 #
 def double(a):
     return 2 * a
+
+def triple(a):
+    return 3 * a
@@ -40,3 +42,2 @@ class Tail:
 x = 1
-y = 2
 z = 3
\\ No newline at end of file
diff --git a/tests/test_calc.py b/tests/test_calc.py
index 1..2 100644
--- a/tests/test_calc.py
+++ b/tests/test_calc.py
@@ -1 +1 @@
-assert add(1, 2) == 3
+assert add(1, 2)
diff --git a/README.md b/README.md
index 1..2 100644
--- a/README.md
+++ b/README.md
@@ -0,0 +1 @@
+words
"""


def a_verdict(*proof: Proof, unproved: tuple[Finding, ...] = ()) -> Verdict:
    return Verdict(passed=True, reasons=(), evidence=(), proof=proof, unproved=unproved)


def arrange(verdict: Verdict | None, diff: str = DIFF) -> dict[str, FileView]:
    return {file.path: file for file in arrange_diff(split_diff(diff), Surface(), verdict)}


def marks(file: FileView) -> list[tuple[JudgedAs, str]]:
    return [(block.mark, block.note) for hunk in file.hunks for block in hunk.blocks if block.mark]


def test_lines_stand_beside_each_other_under_the_numbers_of_their_files() -> None:
    calc = arrange(None)["calc.py"]
    assert (calc.added, calc.removed, len(calc.hunks)) == (4, 2, 2)
    assert [hunk.title for hunk in calc.hunks] == ["import sys", "class Tail:"]
    rows = [row for block in calc.hunks[0].blocks for row in block.rows]
    shown = [
        (row.old and (row.old.number, row.old.text), row.new and (row.new.number, row.new.text))
        for row in rows
    ]
    assert shown[:3] == [
        ((1, "def add(a, b):"), (1, "def add(a, b):")),
        ((2, "    return a - b"), (2, "    return a + b")),
        ((3, "#"), (3, "#")),
    ]
    assert shown[-1] == (None, (8, "    return 3 * a"))
    tail = [row for block in calc.hunks[1].blocks for row in block.rows]
    assert [(row.old and row.old.number, row.new and row.new.number) for row in tail] == [
        (40, 42),
        (41, None),
        (42, 43),
    ]


def test_each_place_has_the_mark_of_the_verdict() -> None:
    hunks = (
        Hunk(path="calc.py", line=2, end=2, proved=True),
        Hunk(path="calc.py", line=7, end=8),
    )
    told = a_verdict(
        Proof(kind=ProofKind.FAIL_TO_PASS, tests=("t",), hunks=hunks),
        unproved=(FindingKind.ADD_FAILING.of(path="calc.py", line=7).replace(end=8),),
    )
    found = arrange(told)
    assert marks(found["calc.py"]) == [
        (JudgedAs.PROVED, ""),
        (JudgedAs.UNPROVED, "add a test that fails without it"),
        (JudgedAs.SAME, "changes no behaviour by itself"),
    ]
    assert marks(found["tests/test_calc.py"]) == [(JudgedAs.CHECK, "")]
    assert marks(found["README.md"]) == [(JudgedAs.DOCUMENT, "")]
    assert found["calc.py"].marks == (JudgedAs.PROVED, JudgedAs.UNPROVED, JudgedAs.SAME)


def test_a_change_that_was_tried_as_a_whole_is_proved_as_a_whole() -> None:
    whole = arrange(a_verdict(Proof(kind=ProofKind.FAIL_TO_PASS, tests=("t",))))["calc.py"]
    assert whole.marks == (JudgedAs.PROVED,)
    same = arrange(a_verdict(Proof(kind=ProofKind.SAME_BEHAVIOUR)))["calc.py"]
    assert same.marks == (JudgedAs.SAME,)


def test_nothing_is_called_proved_without_a_proof() -> None:
    assert arrange(None)["calc.py"].marks == (JudgedAs.OPEN,)
    failed = Verdict(passed=False, reasons=(FindingKind.NOTHING_CHANGED.of(),), evidence=())
    assert arrange(failed)["calc.py"].marks == (JudgedAs.OPEN,)
    unproved = arrange(a_verdict(unproved=(FindingKind.ADD_ANY.of(),)))
    assert unproved["calc.py"].marks == (JudgedAs.UNPROVED,)


def test_a_long_diff_is_cut_and_says_so_and_a_binary_file_has_no_lines() -> None:
    head = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -0,0 +1,2000 @@\n"
    long = arrange(None, head + "".join(f"+x{number} = 1\n" for number in range(2000)))["a.py"]
    assert (long.added, long.left_out) == (2000, 1201)
    binary = arrange(None, "diff --git a/a.bin b/a.bin\nBinary files a/a.bin and b/a.bin differ\n")["a.bin"]
    assert binary.hunks == ()


def test_one_insertion_has_a_mark_for_each_part_that_was_tried() -> None:
    head = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,0 +2,6 @@\n"
    added = "+\n+def proved():\n+    return 1\n+\n+def unproved():\n+    return 2\n"
    hunks = (Hunk(path="a.py", line=3, end=5, proved=True), Hunk(path="a.py", line=6, end=7))
    proof = Proof(kind=ProofKind.FAIL_TO_PASS, tests=("t",), hunks=hunks)
    unproved = (
        FindingKind.ADD_FAILING.of(path="a.py", line=6).replace(end=7),
        FindingKind.AS_WORDED.of("try it", path="a.py", line=7),
    )
    told = a_verdict(proof, unproved=unproved)
    (hunk,) = arrange(told, head + added)["a.py"].hunks
    assert [(block.mark, len(block.rows)) for block in hunk.blocks] == [
        (JudgedAs.PROVED, 4),
        (JudgedAs.UNPROVED, 2),
    ]
    assert hunk.blocks[1].note == "add a test that fails without it; try it"


def a_mutant(line: int, edit: str, *, is_strong: bool = True, code: Side = Side.FINAL) -> MutantResult:
    return MutantResult(
        path="calc.py",
        line=line,
        before=edit.partition(" → ")[0],
        after=edit.partition(" → ")[2],
        operator="part left out",
        edit=edit,
        is_strong=is_strong,
        outcome=MutantEnd.SURVIVED,
        code=code,
    )


def test_what_no_test_notices_stands_at_its_line_also_where_lines_only_went() -> None:
    mutants = (
        a_mutant(2, "a + b → a"),
        a_mutant(8, "3 * a → a", is_strong=False),
        a_mutant(43, "y = 2 → (left out)", code=Side.BASE),
        a_mutant(6, "2 → 3").replace(outcome=MutantEnd.KILLED),
    )
    unproved = (
        FindingKind.UNNOTICED.of("a + b → a", path="calc.py", line=2),
        FindingKind.AS_WORDED.of("add a test", path="calc.py", line=43),
    )
    verdict = a_verdict(unproved=unproved)
    (calc, *others) = arrange_diff(split_diff(DIFF), Surface(), verdict, mutants)
    rows = [row for hunk in calc.hunks for block in hunk.blocks for row in block.rows]
    shown = [
        (row.old and row.old.number, row.new and row.new.number, each.edit)
        for row in rows
        for each in row.survivors
    ]
    assert shown == [
        (2, 2, "a + b → a"),
        (None, 8, "3 * a → a"),
        (41, None, "y = 2 → (left out)"),
    ]
    assert marks(calc) == [
        (JudgedAs.UNPROVED, ""),  # the line says it
        (JudgedAs.UNPROVED, "calc.py:2: no test notices a + b → a"),
        (JudgedAs.UNPROVED, "add a test"),
    ]
    assert (calc.survived, [file.survived for file in others]) == (2, [0, 0])
