"""Whole tables of which the short tests try some: python -m pytest tests/soak/test_sweeps.py."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import (
    test_connection,
    test_ends,
    test_escalation,
    test_levels,
    test_links,
    test_named_class,
    test_probes,
    test_project_settings,
    test_tampering,
    test_undo,
    test_verdict,
    test_verify_task,
    test_watching,
)
from tests.e2e.test_levels import machine, prepared
from tests.e2e.test_links import bare_path, path
from tests.e2e.test_undo import repo
from tests.e2e.test_watching import red
from tests.support import play
from tests.support.levels import Machine
from tests.support.repo import NewRepo, Repo
from tests.unit.repair import test_policy
from tests.unit.repair.bugs import BUGS, Bug
from tests.unit.routing import test_classify

__all__ = ["bare_path", "machine", "path", "prepared", "red", "repo"]


@pytest.mark.parametrize("case", test_probes.CASES.values(), ids=test_probes.CASES)
def test_what_has_to_fail_does_so(tmp_path: Path, case: test_probes.Case) -> None:
    test_probes.test_what_has_to_fail_does_so_with_honest_changes_alone(tmp_path, case)


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_seeded_bugs_are_mended_by_one_edit(tmp_path: Path, bug: Bug) -> None:
    test_policy.test_a_seeded_bug_is_mended_by_one_edit(bug, tmp_path)


@pytest.mark.parametrize("name", test_tampering.WEAKENED.values(), ids=test_tampering.WEAKENED)
def test_weakened_checks_that_are_denied_are_tampered(tmp_path: Path, name: str) -> None:
    test_tampering.test_weakened_checks_wait_and_denied_they_are_tampered(name, tmp_path)


@pytest.mark.parametrize("name", ["tests that fail deleted", "outcomes rewritten"])
def test_weakened_checks_that_are_approved_are_caveats(tmp_path: Path, name: str) -> None:
    test_tampering.test_weakened_checks_that_a_person_approves_are_listed_as_caveats(name, tmp_path)


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
    test_connection.test_requests_go_through_the_users_proxy(new_repo(play.CALC), variable, transport)


@pytest.mark.parametrize(("text", "change"), [*product(test_verdict.WORDINGS, test_verdict.CHANGES)])
def test_what_differs_decides(new_repo: NewRepo, text: str, change: tuple[str, str, int]) -> None:
    test_verdict.test_what_differs_decides_and_not_how_the_task_is_worded(new_repo, text, *change)


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
    test_escalation.test_an_escalation_that_names_no_place_asks_nobody(new_repo(play.CALC), changes, problem)


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
