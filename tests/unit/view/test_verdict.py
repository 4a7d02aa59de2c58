from collections.abc import Callable, Iterable

import pytest

from agentflow.core.errors import Exit
from agentflow.core.evidence import TestCounts
from agentflow.core.finding import FindingKind
from agentflow.core.messages import Usage
from agentflow.core.task import Ending, Failure, Phase, Status
from agentflow.core.verdict import Verdict
from agentflow.view.tasks import Snapshot
from agentflow.view.text import Line, Style, fit_lines
from agentflow.view.verdict import draw_verdict, split_diff
from tests.unit.view.test_text import HOSTILE

Golden = Callable[[str, Iterable[Line]], None]
DIFF = '''\
diff --git a/src/pager.py b/src/pager.py
index 1d2c3b4..5e6f7a8 100644
--- a/src/pager.py
+++ b/src/pager.py
@@ -1,5 +1,5 @@
 def pages(entries, size):
     """Return the entries, page by page."""
-    count = len(entries) // size
+    count = -(-len(entries) // size)
     return [entries[n * size : (n + 1) * size] for n in range(count)]
diff --git a/tests/test_pager.py b/tests/test_pager.py
index 1d2c3b4..5e6f7a8 100644
--- a/tests/test_pager.py
+++ b/tests/test_pager.py
@@ -9,0 +10,3 @@ def test_first_page():
+
+def test_last_page():
+    assert pages([1, 2, 3], 2)[-1] == [3]
'''


def words(lines: Iterable[Line]) -> str:
    return "\n".join(one.text for one in lines)


@pytest.mark.parametrize("width", [100, 80, 40])
def test_the_report_of_a_verified_task(width: int, finished: Snapshot, golden: Golden) -> None:
    golden(f"verdict_{width}", fit_lines(draw_verdict(finished, DIFF), width))


def test_a_task_whose_checks_stay_red_says_how_many_tests_fail(finished: Snapshot) -> None:
    red = {one.id: one.replace(exit_code=1) for one in finished.evidence}
    counted = [TestCounts(passed=1, failed=2), TestCounts(passed=2, errors=1)]
    (*_, then), (*_, now) = finished.state.baseline, finished.state.final
    for check, tests in zip((then, now), counted, strict=True):
        red[str(check.evidence)] = red[str(check.evidence)].replace(tests=tests)
    state = finished.state.replace(baseline=(then,), final=(now,))
    shown = draw_verdict(finished.replace(state=state, evidence=tuple(red.values())), "")
    assert shown[0].text == "✓ verified: 2 tests failed before, 1 now; no new failures."


def test_a_check_in_which_no_test_ran_has_no_tick(finished: Snapshot) -> None:
    (*_, now) = finished.state.final
    empty = [one.replace(tests=TestCounts(), exit_code=0) for one in finished.evidence]
    state = finished.state.replace(final=(now,))
    shown = words(draw_verdict(finished.replace(state=state, evidence=tuple(empty)), ""))
    assert "✗ tests" in shown
    assert "no test ran" in shown


def test_a_task_without_a_change_or_a_command_says_so(finished: Snapshot, golden: Golden) -> None:
    state = finished.state.replace(
        status=Status.FAILED,
        final=(),
        baseline=(),
        verdict=None,
        failures=(),
        sandbox="full",
        model="anthropic",
        usage=Usage(input=10, output=1, cache_read=5, cost_usd=0.0123),
        ending=Ending(status=Status.FAILED, exit_code=Exit.NOT_VERIFIED, reason="nothing was changed"),
    )
    golden("verdict_nothing", draw_verdict(finished.replace(state=state, evidence=()), ""))


@pytest.mark.parametrize(
    ("baseline", "said"),
    [
        (("ev-0001", "ev-0002"), "1 failing check now passes; no new failures."),
        (("ev-0002", "ev-0005"), "2 failing checks now pass; no new failures."),
        (("ev-0001", "ev-0007"), "2 checks pass on the changed code; no new failures."),
        ((None, None), "2 checks pass on the changed code; no new failures."),
    ],
)
def test_the_verdict_counts_what_turned_green(
    baseline: tuple[str | None, str | None], said: str, finished: Snapshot
) -> None:
    state = finished.state
    lint, _, tests = state.baseline
    changed = (lint.replace(evidence=baseline[0]), tests.replace(evidence=baseline[1]))
    first = draw_verdict(finished.replace(state=state.replace(baseline=changed)), "")[0]
    assert first.text == f"✓ verified: {said}"
    assert first.spans[1].style is Style.GOOD


@pytest.mark.parametrize("status", sorted({*Status} - {"verified", "verified_with_caveat", "running"}))
def test_no_other_end_reads_as_verified(status: Status, finished: Snapshot) -> None:
    ending = Ending(status=status, exit_code=Exit.NOT_VERIFIED, reason="tests: exit 1")
    rows = draw_verdict(finished.replace(state=finished.state.replace(status=status, ending=ending)), DIFF)
    assert ": tests: exit 1" in rows[0].text
    assert "verified" not in rows[0].text.replace("not verified", "")
    assert "plausible" not in words(rows)


def test_caveats_are_explained_and_notes_are_shown(finished: Snapshot) -> None:
    shown = Verdict(
        passed=True,
        reasons=(),
        evidence=(),
        caveats=("unproved", "something_new"),
        notes=(FindingKind.AS_WORDED.of("1 new file is not tracked"),),
    )
    state = finished.state.replace(status=Status.VERIFIED_WITH_CAVEAT, verdict=shown)
    rows = draw_verdict(finished.replace(state=state), DIFF)
    assert rows[0].text.startswith("! verified with caveat: ")
    assert rows[0].spans[1].style is Style.WARN
    assert "unproved  no test proves the change" in words(rows)
    assert "caveat     something_new\n" in words(rows)
    assert "note       1 new file is not tracked" in words(rows)


@pytest.mark.parametrize(
    ("cost", "said"), [(None, "cost unknown, 6,300 tokens in"), (0.5, "$0.5000, "), (0.0, "no cost, ")]
)
def test_an_unknown_cost_is_never_a_number(cost: float | None, said: str, finished: Snapshot) -> None:
    state = finished.state.replace(usage=finished.state.usage.replace(cost_usd=cost))
    assert said in words(draw_verdict(finished.replace(state=state), ""))


def test_only_the_embedded_model_is_called_plausible(finished: Snapshot) -> None:
    other = finished.replace(state=finished.state.replace(model="anthropic"))
    assert "Only your tests vouch for this fix" in words(draw_verdict(finished, DIFF))
    assert "vouch" not in words(draw_verdict(other, DIFF))


def test_a_long_diff_is_cut_after_forty_lines(finished: Snapshot) -> None:
    head = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -0,0 +1,30 @@\n"
    diff = "".join(head.format(name) + "+x\n" * 30 for name in ("one.py", "two.py", "three.py"))
    rows = [row.text for row in draw_verdict(finished, diff)]
    assert sum(row.startswith(("    +", "    @@")) for row in rows) == 40
    assert rows.count("    … 22 lines more") == 1
    assert rows.count("    … 31 lines more") == 1
    assert "  three.py  +30 -0" in rows


def test_many_files_are_counted(finished: Snapshot) -> None:
    diff = "".join(f"diff --git a/{n}.py b/{n}.py\n--- a/{n}.py\n+++ b/{n}.py\n" for n in range(20))
    shown = words(draw_verdict(finished, diff))
    assert "changed    20 files" in shown
    assert "… and 8 files more" in shown


@pytest.mark.parametrize(
    ("head", "path"),
    [
        ("diff --git a/x b/x", "x"),
        ("diff --git a/a b/c.py b/a b/c.py", "a b/c.py"),
        ("diff --git a/old.py b/new.py", "new.py"),
        ('diff --git "a/\\303\\251.py" "b/\\303\\251.py"', "\\303\\251.py"),
    ],
)
def test_the_file_of_a_diff_is_named(head: str, path: str) -> None:
    (file,) = split_diff(f"{head}\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n")
    assert (file.path, file.added, file.removed) == (path, 1, 1)


def test_an_empty_diff_is_no_file() -> None:
    assert list(split_diff("")) == []


def test_a_changed_line_that_looks_like_a_head_is_counted_as_a_line() -> None:
    (file,) = split_diff(
        "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- a/y\n+++ b/y\n+diff --git a b\n"
    )
    assert (file.path, file.added, file.removed) == ("x", 2, 1)


def test_failed_iterations_are_told_with_their_reasons(finished: Snapshot) -> None:
    failure = Failure(
        iteration=1,
        phase=Phase.REVIEW,
        tree="t",
        signature="s",
        reasons=tuple(FindingKind.AS_WORDED.of(f"reason {number}") for number in range(5)),
        evidence=(),
    )
    shown = words(draw_verdict(finished.replace(state=finished.state.replace(failures=(failure,))), ""))
    assert (
        "✗ iteration 1 failed (review): reason 0\n      reason 1\n      reason 2\n      … and 2 more reasons"
        in shown
    )


@pytest.mark.parametrize("hostile", HOSTILE)
def test_foreign_text_reaches_no_report_raw(hostile: str, finished: Snapshot) -> None:
    said = FindingKind.AS_WORDED.of(hostile)
    failure = finished.state.failures[0].replace(reasons=(said, said.replace(path="a")))
    shown = Verdict(passed=True, reasons=(), evidence=(), caveats=(hostile,), notes=(said,))
    ending = Ending(status=Status.FAILED, exit_code=Exit.NOT_VERIFIED, reason=hostile)
    state = finished.state.replace(
        failures=(failure,), verdict=shown, ending=ending, status=Status.FAILED, sandbox="none"
    )
    diff = f"diff --git a/{hostile} b/{hostile}\n@@ -1 +1 @@ {hostile}\n+{hostile}\n"
    rows = draw_verdict(finished.replace(state=state), diff)
    assert all(row.text.isprintable() for row in rows)


def test_who_asked_for_nothing_pays_nothing(finished: Snapshot) -> None:
    state = finished.state.replace(usage=Usage(cost_usd=None))
    assert "used       no tokens, no cost" in words(draw_verdict(finished.replace(state=state), ""))


def test_somebody_elsewhere_is_told_where_the_task_is(finished: Snapshot) -> None:
    shown = words(draw_verdict(finished, DIFF, "/srv/my shop"))
    assert f"report     /srv/my shop/.claude/agentflow/{finished.folder.name}/report.md" in shown
    assert f"next       agentflow commit {finished.folder.name} -C '/srv/my shop' commits it, " in shown
    assert "-C" not in words(draw_verdict(finished, DIFF))


def test_an_empty_line_at_the_end_of_a_diff_is_left_out(finished: Snapshot) -> None:
    rows = [row.text for row in draw_verdict(finished, DIFF.rstrip("\n") + "\n \n")]
    assert rows[rows.index("iterations 2 of 10") - 2].strip()


@pytest.mark.parametrize("status", [Status.SUSPENDED, Status.CANCELLED])
def test_what_can_go_on_is_told_how(status: Status, finished: Snapshot) -> None:
    ending = Ending(status=status, exit_code=Exit.SUSPENDED, reason="paused after planning")
    rows = draw_verdict(finished.replace(state=finished.state.replace(status=status, ending=ending)), "")
    assert rows[0].text == f"! {status}: paused after planning"
    assert rows[1].text == f"next       agentflow resume {finished.folder.name} continues it"
