"""Instances in the form of SWE-bench as tasks: repository, base commit, issue, test patch, test ids."""

from pathlib import Path
from typing import Any

from agentflow.batch.task import BatchTask, HiddenCheck
from agentflow.core.errors import InvalidFile
from agentflow.parse import decode, decode_or_none, parse

_KEYS = ("instance_id", "repo", "base_commit", "problem_statement", "test_patch")
_SERVER = "https://github.com"


def is_instance(line: str) -> bool:
    """Tell whether a line of JSON is an instance and not a task."""
    found = decode_or_none(line)
    return isinstance(found, dict) and "instance_id" in found


def to_task(line: str, path: Path) -> BatchTask:
    """Return an instance as a task. Raises InvalidFile naming the key.

    A clone is looked for below `repositories` beside the file, else the repository is fetched. The Python
    environment has to be below `environments` there, by the id of the instance.
    """
    fields = decode(dict[str, Any], line, str(path))
    for key in _KEYS:
        if not isinstance(fields.get(key), str) or not fields[key]:
            raise InvalidFile(str(path), f"{key}: an instance needs a text here")
    repo = fields["repo"]
    here = path.absolute().parent / "repositories" / repo.replace("/", "__")
    tests = (*_read_ids(fields, "FAIL_TO_PASS", path), *_read_ids(fields, "PASS_TO_PASS", path))
    if not tests:
        raise InvalidFile(str(path), "FAIL_TO_PASS: an instance needs at least one test id")
    return BatchTask(
        id=fields["instance_id"],
        group=repo,
        repository=str(here) if here.is_dir() else f"{_SERVER}/{repo}.git",
        commit=fields["base_commit"],
        text=fields["problem_statement"],
        environment=f"environments/{fields['instance_id']}",
        check=HiddenCheck(
            command="python -m pytest -q " + " ".join(_list_files(tests)),
            patch=fields["test_patch"],
            tests=tests,
            timeout=1800,
        ),
    )


def _read_ids(fields: dict[str, Any], key: str, path: Path) -> tuple[str, ...]:
    """Return test ids, which some files hold as a list and others as the text of one."""
    found = fields.get(key, ())
    return parse(
        tuple[str, ...], decode_or_none(found) if isinstance(found, str) else found, f"{path}: {key}"
    )


def _list_files(tests: tuple[str, ...]) -> list[str]:
    """Return the files that hold the tests, quoted for a shell."""
    files = dict.fromkeys(test.partition("::")[0] for test in tests)
    return ["'" + file.replace("'", "'\\''") + "'" for file in files]
