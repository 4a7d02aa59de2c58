"""Whole tables of which the short tests try some: python -m pytest tests/soak/test_sweeps.py."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import (
    test_allowances,
    test_connection,
    test_ends,
    test_escalation,
    test_levels,
    test_links,
    test_named_class,
    test_probes,
    test_project_settings,
    test_routes,
    test_runners,
    test_tampering,
    test_undo,
    test_verify_task,
    test_watching,
)
from tests.e2e.conftest import bare_path
from tests.e2e.test_levels import machine, prepared
from tests.e2e.test_links import path
from tests.e2e.test_undo import repo
from tests.e2e.test_watching import red
from tests.support import play
from tests.support.attempts import Attempt
from tests.support.boxes import boxed, landlocked, unboxed
from tests.support.levels import Machine
from tests.support.repo import NewRepo, Repo
from tests.support.tampering import BASE, TASK
from tests.unit.repair import test_policy, test_search
from tests.unit.repair.bugs import BUGS, Bug
from tests.unit.routing import test_classify

Boxed = test_search.Boxed
Search = Callable[[Boxed, Path], None]
__all__ = ["bare_path", "machine", "path", "prepared", "red", "repo"]


@pytest.mark.parametrize("case", test_probes.CASES.values(), ids=test_probes.CASES)
def test_what_has_to_fail_does_so(tmp_path: Path, case: test_probes.Case) -> None:
    test_probes.test_what_has_to_fail_does_so_with_honest_changes_alone(tmp_path, case)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_seeded_bugs_are_mended_by_one_edit(tmp_path: Path, bug: Bug) -> None:
    test_policy.test_a_seeded_bug_is_mended_by_one_edit(bug, tmp_path)


@pytest.mark.parametrize("name", test_tampering.WEAKENED.values(), ids=test_tampering.WEAKENED)
def test_weakened_checks_that_are_denied_are_tampered(tmp_path: Path, name: str) -> None:
    case = test_tampering.BY_NAME[name]
    attempt = Attempt(tmp_path, {**BASE, **case.base})

    assert attempt.run(TASK, {**case.files, "pager/core.py": test_tampering.HALF}).code == 75
    (waiting,) = attempt.waiting
    ended = attempt.settle("deny", "--reason", "no")

    assert waiting["kind"] == "surface"
    assert ended.code == 8
    assert attempt.repo.state()["status"] == "tampered"
    sides = {(record["surface"], record["code"]) for record in attempt.repo.evidence()}
    assert {("final", "final"), ("base", "final")} <= sides


@pytest.mark.parametrize("name", ["tests that fail deleted", "outcomes rewritten"])
def test_weakened_checks_that_are_approved_are_caveats(tmp_path: Path, name: str) -> None:
    test_tampering.test_weakened_checks_that_a_person_approves_are_listed_as_caveats(name, tmp_path)


@pytest.mark.parametrize(("says", "code"), test_tampering.SAID.items(), ids=str)
def test_at_a_terminal_only_a_yes_approves_changed_checks(
    tmp_path: Path, says: tuple[str, ...], code: int
) -> None:
    test_tampering.test_at_a_terminal_only_a_yes_approves_it(says, code, tmp_path)


def test_without_input_nothing_approves_changed_checks(tmp_path: Path) -> None:
    test_tampering.test_nothing_said_beforehand_approves_it("--no-input", tmp_path)


@pytest.mark.parametrize("files", test_allowances.SPOILT.values(), ids=test_allowances.SPOILT)
def test_a_missing_tool_hides_no_wrong_change(tmp_path: Path, files: dict[str, str]) -> None:
    test_allowances.test_a_missing_tool_hides_no_wrong_change(tmp_path, files)


@pytest.mark.parametrize("script", test_runners.SWITCHED_OFF.values(), ids=test_runners.SWITCHED_OFF)
@test_runners.needs_node
def test_a_runner_that_is_switched_off_verifies_nothing(new_repo: NewRepo, script: str) -> None:
    test_runners.test_a_runner_that_is_switched_off_verifies_nothing(new_repo, script)


@pytest.mark.parametrize(("text", "complexity", "roles"), test_routes.ROUTES)
def test_a_change_runs_the_roles_of_its_route(
    new_repo: NewRepo, text: str, complexity: str, roles: str
) -> None:
    test_routes.test_a_change_runs_the_roles_of_its_route_and_the_checks(new_repo, text, complexity, roles)


@pytest.mark.parametrize("box", [boxed, landlocked, unboxed])
@pytest.mark.parametrize(
    "search",
    [
        test_search.test_tests_that_set_modes_and_times_of_their_own_files_are_run,
        test_search.test_an_executable_script_stays_one_under_every_candidate,
        test_search.test_a_candidate_that_ends_the_process_that_tries_it_is_a_lost_one_and_told,
        test_search.test_a_search_whose_processes_all_end_says_so_by_name,
        test_search.test_what_edits_start_write_or_wait_for_is_gone_before_the_next_one,
    ],
)
def test_a_search_for_a_repair_at_each_level(tmp_path: Path, box: Boxed, search: Search) -> None:
    search(box, tmp_path)


@pytest.mark.parametrize("body", test_tampering.DESTRUCTIVE.values(), ids=test_tampering.DESTRUCTIVE)
def test_whatever_tests_do_the_users_files_stay(tmp_path: Path, body: str) -> None:
    test_tampering.test_whatever_tests_do_the_users_files_and_index_stay(body, tmp_path)


@pytest.mark.parametrize(("name", "subject"), test_verify_task.BYTES.items())
def test_one_changed_byte_is_named(done: Repo, name: str, subject: str) -> None:
    test_verify_task.test_one_changed_byte_is_named(done, name, subject)


@pytest.mark.parametrize("command", test_undo.ATTACKS)
def test_whatever_a_command_did_is_put_back(repo: Repo, command: str) -> None:
    test_undo.test_whatever_a_command_did_the_users_files_are_put_back_byte_for_byte(repo, command)


@pytest.mark.parametrize("line", test_project_settings.NEVER)
def test_what_only_a_person_says_is_an_error(new_repo: NewRepo, line: str) -> None:
    test_project_settings.test_what_only_a_person_says_is_an_error_once_trusted(new_repo, line)


@pytest.mark.parametrize(("words", "code"), test_watching.CLOSED.values(), ids=test_watching.CLOSED)
def test_a_reader_who_has_gone_changes_nothing(red: Repo, words: list[str], code: int) -> None:
    test_watching.test_a_reader_who_has_gone_changes_neither_the_code_nor_the_messages(red, words, code)


@pytest.mark.parametrize("transport", test_connection.TRANSPORTS)
@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
def test_requests_go_through_the_users_proxy(new_repo: NewRepo, variable: str, transport: str) -> None:
    test_connection.test_requests_go_through_the_users_proxy(new_repo(play.LIGHT), variable, transport)


@pytest.mark.parametrize("name", test_ends.ENDS)
def test_an_end_after_an_edit_tells_of_the_edit(new_repo: NewRepo, name: str) -> None:
    test_ends.test_an_end_after_an_edit_tells_of_the_edit(new_repo, name)


@pytest.mark.parametrize("command", test_links.REWRITES.values(), ids=test_links.REWRITES)
def test_what_a_link_of_the_settings_leads_to_is_not_rewritten(
    new_repo: NewRepo, path: dict[str, str], command: str
) -> None:
    test_links.test_what_a_link_of_the_settings_leads_to_is_not_rewritten_by_a_command(
        new_repo, path, command
    )


@pytest.mark.parametrize(("problem", "changes"), test_escalation.NOWHERE.items(), ids=test_escalation.NOWHERE)
def test_an_escalation_that_names_no_place_asks_nobody(
    new_repo: NewRepo, problem: str, changes: dict[str, Any]
) -> None:
    test_escalation.test_an_escalation_that_names_no_place_asks_nobody(new_repo(play.LIGHT), changes, problem)


@pytest.mark.parametrize("name", test_named_class.CLASSES)
@pytest.mark.parametrize("text", test_named_class.TEXTS)
def test_the_class_that_is_named_counts(new_repo: NewRepo, name: str, text: str) -> None:
    test_named_class.test_the_class_that_is_named_counts_and_not_the_words(new_repo(play.CALC), name, text)


@pytest.mark.parametrize("filler", ["break \n", "and "], ids=repr)
def test_a_long_text_is_classified_at_once(filler: str) -> None:
    test_classify.test_a_long_text_is_classified_by_its_beginning_and_its_end_and_at_once(filler)


def test_each_level_of_the_sandbox_serves_each_kind_of_task(machine: Machine) -> None:
    test_levels.test_the_demo_is_verified(machine)
    test_levels.test_a_repair_is_found_whatever_the_tests_do_to_files_of_their_own(machine)
    test_levels.test_a_lie_is_not_verified(machine)
