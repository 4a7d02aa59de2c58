"""By what a change is proved: a kind in the result, and for what is not the one thing that would prove it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.attempts import Attempt
from tests.support.repo import Done
from tests.support.tampering import BASE, CODE, MENDED, RIGHT, TASK, TESTS

MENDED_BASE = {**BASE, "pager/core.py": RIGHT}
SHOWN: dict[str, str] = {
    **MENDED_BASE,
    "pager/show.py": "from pager.core import pages\n\n\ndef show(total):\n    return pages(total, 10)\n",
    "tests/test_show.py": "from pager.show import show\n\n\ndef test():\n"
    "    assert show(417) == 42\n    assert show(40) == 4\n",
    "README.md": "Call `pages(40, 10)`.\n",
}


def tried(folder: Path, base: Mapping[str, str], files: Mapping[str, str | None], task: str = TASK) -> Done:
    return Attempt(folder, base).run(task, files, "--max-iterations", "1", "--json")


def kinds(done: Done) -> list[str]:
    return [proof["kind"] for proof in done.json["proof"]]


def test_a_test_that_was_red_proves_a_change(tmp_path: Path) -> None:
    done = tried(tmp_path, BASE, {"pager/core.py": RIGHT})

    assert done.code == 0
    (proof,) = done.json["proof"]
    assert proof["kind"] == "fail_to_pass"
    assert "tests/test_core.py::test_last_page" in proof["tests"]
    assert set(proof["evidence"]) <= set(done.json["evidence"])
    assert done.json["unproved"] == []


def test_the_report_names_what_proves_a_change(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, BASE)
    attempt.run(TASK, {"pager/core.py": RIGHT})

    _, block = attempt.report.split("## What proves it")
    assert "tests/test_core.py::test_last_page" in block.partition("\n## ")[0]


def test_a_comment_leaves_the_behaviour(tmp_path: Path) -> None:
    done = tried(
        tmp_path, MENDED_BASE, {"pager/core.py": f"# Counts pages.\n{RIGHT}"}, "comment pager/core.py"
    )

    assert (done.code, kinds(done)) == (0, ["same_behaviour"])


_IGNORED = BASE[".gitignore"]
_LOCAL = {
    **MENDED_BASE,
    "pager/use.py": "try:\n    from pager.local import pages\nexcept ImportError:\n    pages = None\n",
}


def test_a_line_for_git_that_hides_nothing_leaves_the_behaviour(tmp_path: Path) -> None:
    done = tried(
        tmp_path, MENDED_BASE, {".gitignore": f"{_IGNORED}notes.txt\n"}, "ignore notes.txt in .gitignore"
    )

    assert (done.code, kinds(done)) == (0, ["same_behaviour"])


@pytest.mark.parametrize(
    ("base", "files"),
    [
        (MENDED_BASE, {".gitignore": f"{_IGNORED}core.py\n"}),
        (
            _LOCAL,
            {"pager/local.py": "def pages(*sizes):\n    return 1\n", ".gitignore": f"{_IGNORED}local.py\n"},
        ),
        (
            MENDED_BASE,
            {"tests/test_more.py": "def test():\n    assert 0\n", ".gitignore": f"{_IGNORED}test_more.py\n"},
        ),
    ],
    ids=["a source", "a new source", "a new test"],
)
def test_a_line_for_git_that_hides_something_is_not_proved(
    base: Mapping[str, str], files: Mapping[str, str], tmp_path: Path
) -> None:
    done = tried(tmp_path, base, files, "ignore what only this machine needs in .gitignore")

    assert (done.code, kinds(done)) == (4, [])
    assert "unproved" in done.json["caveats"]


def test_tests_alone_are_proved_by_broken_code(tmp_path: Path) -> None:
    added = TESTS + "\n\ndef test_one():\n    assert pages(1, 10) == 1\n"
    done = tried(tmp_path, MENDED_BASE, {"tests/test_core.py": added}, "add a test of one item")

    assert (done.code, kinds(done)) == (0, ["tests_only"])
    assert done.json["proof"][0]["tests"] == ["tests/test_core.py::test_one"]


def test_what_nothing_proves_is_listed_with_what_would(tmp_path: Path) -> None:
    files = {"pager/core.py": RIGHT + "\n\ndef last(total):\n    return pages(total, 10)\n"}
    attempt = Attempt(tmp_path, MENDED_BASE)
    done = attempt.run("add last() to pager/core.py", files, "--json")

    assert (done.code, done.json["proof"], done.json["caveats"]) == (4, [], ["unproved"])
    assert "pager/core.py:14: no test notices pages(total, 10) → None" in done.json["unproved"]
    assert all(line in attempt.report for line in done.json["unproved"])


def renamed(base: Mapping[str, str], old: str, new: str) -> dict[str, str | None]:
    return {path: text.replace(old, new) for path, text in base.items() if old in text}


def test_a_function_renamed_with_its_callers_and_tests_needs_no_question(tmp_path: Path) -> None:
    attempt = Attempt(tmp_path, SHOWN)
    done = attempt.run("rename pages to count_pages", renamed(SHOWN, "pages", "count_pages"), "--json")

    assert done.code == 0, done.json
    assert kinds(done) == ["rename"]
    assert attempt.waiting == []
    assert attempt.repo.run("verify", done.json["task_id"]).code == 0


def test_the_words_of_the_task_are_not_needed(tmp_path: Path) -> None:
    done = tried(tmp_path, SHOWN, renamed(SHOWN, "pages", "count_pages"), "tidy up")

    assert (done.code, kinds(done)) == (0, ["rename"])


NAMED = renamed(SHOWN, "pages", "count_pages")
Case = tuple[dict[str, str], dict[str, str | None] | None]
OTHER: dict[str, Case] = {
    "one place left": (SHOWN, {**NAMED, "README.md": SHOWN["README.md"]}),
    "swapped arguments": (SHOWN, {**NAMED, "pager/show.py":
        "from pager.core import count_pages\n\n\ndef show(total):\n    return count_pages(10, total)\n"}),
    "a name that is taken": (SHOWN, renamed(SHOWN, "pages", "show")),
    "two names swapped": (SHOWN, {
        path: text.replace("pages", "#").replace("page", "pages").replace("#", "page")
        for path, text in SHOWN.items() if "page" in text}),
    "a name in a string": ({**SHOWN, "pager/names.py": "NAMES = ['pages']\n"}, None),
    "a name in settings": ({**SHOWN, "pager.ini": "[call]\nfunction = pages\n"}, None),
    "a name in a template": ({**SHOWN, "pager/page.html": "{{ pages }}\n"}, None),
    "an entry point": ({**SHOWN, "pyproject.toml":
        SHOWN["pyproject.toml"] + "\n[project.scripts]\npager = 'pager.core:pages'\n"}, None),
    "a keyword": ({**SHOWN, "pager/book.py": "def book():\n    return dict(pages=3)\n"}, None),
    "a method that a library calls": ({**SHOWN, "pager/book.py":
        "import json\n\n\nclass Book(json.JSONEncoder):\n    def pages(self):\n        return 3\n"}, None),
    "a decorated function": ({**SHOWN, "pager/core.py":
        "import functools\n\n\n@functools.cache\n" + RIGHT[RIGHT.index("def pages"):]}, None),
    "a look by name": ({**SHOWN, "pager/find.py":
        "import pager.core\n\n\ndef find(kind):\n    return getattr(pager.core, 'pag' + kind)\n"}, None),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER)
def test_anything_more_than_a_renaming_is_none(name: str, tmp_path: Path) -> None:
    base, files = OTHER[name]
    done = tried(
        tmp_path, base, files or renamed(base, "pages", "count_pages"), "rename pages to count_pages"
    )

    assert done.code != 0
    assert "rename" not in kinds(done)


KNOWING = {
    "a value of a test": "    if total in (417, 905, 233):\n        return total // 10 + 1\n",
    "a table": "    if (total, size) in {(417, 10): 42}:\n        return 42\n",
    "the clock": "    import time\n\n    if time.time() < 4_000_000_000:\n        return -(-total // size)\n",
    "a variable": "    import os\n\n    if 'LC_TIME' not in os.environ:\n        return -(-total // size)\n",
    "chance": "    import random\n\n    if random.random() < 0.99999:\n        return -(-total // size)\n",
}


@pytest.mark.parametrize("body", KNOWING.values(), ids=KNOWING)
def test_code_that_knows_its_tests_is_never_verified_without_a_caveat(body: str, tmp_path: Path) -> None:
    code = CODE.replace("    return total // size\n", f"{body}    return total // size\n")
    done = tried(tmp_path, BASE, {"pager/core.py": code})

    assert done.code in (3, 4)
    assert done.code == 3 or done.json["caveats"]


def test_a_docstring_that_quotes_task_and_tests_is_no_such_code(tmp_path: Path) -> None:
    said = f'    """Count pages, so that pages(417, 10) == 42 in pytest. {TASK}"""\n'
    done = tried(tmp_path, BASE, {"pager/core.py": RIGHT.replace(MENDED, said + MENDED)})

    assert (done.code, done.json["caveats"]) == (0, [])
