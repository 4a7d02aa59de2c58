"""What proves a change: pure functions of a case, and the rule for renamings."""

import ast
import builtins
import keyword
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath

from agentflow.core.evidence import RED, CheckName, CheckRun, Side, TestOutcome
from agentflow.core.verdict import Hunk, Proof, ProofKind
from agentflow.redact import list_some
from agentflow.verdict.case import Case
from agentflow.verdict.same.comments import NO_PYTHON, read_python
from agentflow.verdict.same.equivalence import is_document, is_document_path
from agentflow.verdict.same.other_names import SCRIPTS, is_function_of_scripts
from agentflow.verdict.same.renaming import home_of, is_plain, reaches_by_name
from agentflow.verdict.target_tests import id_prefix
from agentflow.workspace.mixed_tree import ChangedTexts


def find_proofs(case: Case) -> tuple[Proof, ...]:
    """Return everything that proves a change."""
    if case.is_renaming:  # its tests fail on the code from before since that lacks a name
        ids = _evidence([*case.before, *case.after], {CheckName.TESTS})
        return (Proof(kind=ProofKind.RENAME, evidence=ids),)
    found = []
    if tests := find_proof(case):
        ids = _evidence(case.runs, {CheckName.TESTS, *tests})
        found.append(
            Proof(
                kind=ProofKind.FAIL_TO_PASS,
                tests=tuple(dict.fromkeys(sorted(tests))),
                hunks=case.hunks,
                evidence=ids,
            )
        )
    if case.same_behaviour:
        found.append(Proof(kind=ProofKind.SAME_BEHAVIOUR))
    if case.proven_tests:
        ids = _evidence(case.after, {CheckName.TESTS})
        found.append(Proof(kind=ProofKind.TESTS_ONLY, tests=tuple(sorted(case.proven_tests)), evidence=ids))
    return tuple(found)


def find_unproved(case: Case, found: Collection[Proof]) -> tuple[str, ...]:
    """Return the changed places that nothing proves, each with what would prove it."""
    hunks = [hunk for hunk in case.hunks if not hunk.proved] if found else case.changed
    is_covered = any(each.kind is not ProofKind.FAIL_TO_PASS for each in found)
    if is_covered or (found and not hunks):
        return ()
    lines = [f"{hunk.place}: {_explain_wanted(case, hunk)}" for hunk in hunks]
    if not lines:
        lines = [f"{path}: let {_list_new(case, path)} fail when the code is broken" for path in case.tested]
    if not lines:
        lines = [f"{path}: nothing that runs here shows what it does: read the diff" for path in case.unshown]
    return tuple(lines) or ("add a test that fails without this change and passes with it",)


def _list_new(case: Case, path: str) -> str:
    """Return the names of the new tests of a file, or a general phrase where they are unknown."""
    known = frozenset[str]().union(*(run.outcomes for run in case.before))
    new = sorted(frozenset[str]().union(*(run.outcomes for run in case.after)) - known)
    own = [test for test in new if test.startswith(path) or len(case.tested) == 1]
    return list_some(own) if own else "each new or changed test"


def _explain_wanted(case: Case, hunk: Hunk) -> str:
    if hunk.path in case.unread:
        return "nothing reads this new file: take it out, or add a test that needs it"
    if any(each.path == hunk.path for each in case.dependencies):
        return "no test sees which version is named: install it, run the tests, and read what is new in it"
    return f"add a test {hunk.wanted}"


def _evidence(runs: Iterable[CheckRun], names: Iterable[str]) -> tuple[str, ...]:
    kept = {*names}
    found = (run.evidence.id for run in runs if run.evidence and run.check.name in kept)
    return tuple(dict.fromkeys(found))


def find_proof(case: Case) -> tuple[str, ...]:
    """Return the checks and tests that fail on the old code and pass on the new code.

    A test counts if it turns twice, since once is luck: red before the task, green now and red on that code
    again; or green now, red on the code before and green now in the very same run.
    A test that is gone counts as it stood, and where a person has to approve how the checks changed, all do.
    """
    others = (run for run in case.before if run.check.name is not CheckName.TESTS)
    pairs = (
        (case.before, case.after),
        (case.before, case.select(checks=Side.BASE)),
        (case.select(code=Side.BASE), _alike(case)),
    )
    again = {each for before, now in pairs for each in find_turned(before, now)}
    tests = [each for each in find_turned(case.select(code=Side.BASE), case.after) if each in again]
    return (*find_turned(tuple(others), case.after), *tests, *_as_it_stood(case))


def _as_it_stood(case: Case) -> list[str]:
    """Return the tests that pass now under the original checks and no longer exist in the new checks."""
    stood = find_turned(case.before, case.select(checks=Side.BASE))
    now = frozenset[str]().union(*(run.outcomes for run in case.after))
    return stood if case.weakened else [each for each in stood if now and each not in {*now, *CheckName}]


def _alike(case: Case) -> tuple[CheckRun, ...]:
    """Return the runs on the new code with the same command as a run on the old code."""
    commands = {run.evidence.command for run in case.select(code=Side.BASE) if run.evidence}
    now = (*case.after, *case.select(again=True))
    return tuple(run for run in now if run.evidence and run.evidence.command in commands)


def is_renaming(names: Mapping[str, str], before: Iterable[CheckRun], now: Iterable[CheckRun]) -> bool:
    """Return whether the same tests pass after the change, apart from the changed names."""
    old = {check: frozenset(_rename(test, names) for test in tests) for check, tests in _list_passing(before)}
    return bool(names) and bool(old.get(CheckName.TESTS)) and old == dict(_list_passing(now))


def _rename(test: str, names: Mapping[str, str]) -> str:
    """Return the id of a test with the name that its function has now."""
    whole, bracket, case = test.partition("[")
    place, mark, name = whole.rpartition("::" if "::" in whole else ".")
    return f"{place}{mark}{names.get(name, name)}{bracket}{case}"


def _list_passing(runs: Iterable[CheckRun]) -> Iterator[tuple[CheckName, frozenset[str]]]:
    for run in runs:
        yield run.check.name, run.ids(TestOutcome.PASSED) if run.green or not run.ids(*RED) else frozenset()


def find_turned(before: tuple[CheckRun, ...], now: tuple[CheckRun, ...]) -> list[str]:
    """Return the checks and tests that failed before and pass now."""
    proven = []
    for base in before:
        run = next((run for run in now if run.check.name is base.check.name), None)
        if run is None or base.evidence is None:
            continue
        if not base.outcomes and not base.green and run.green:
            proven.append(str(run.check.name))
        proven.extend((base.ids(*RED) & run.ids(TestOutcome.PASSED)) | find_loaded_now(base, run))
    return proven


def find_loaded_now(base: CheckRun, run: CheckRun) -> frozenset[str]:
    """Return the ids of files or classes that could not be loaded before and have passing tests now."""
    passed = run.ids(TestOutcome.PASSED)
    return frozenset(
        test
        for test in base.ids(*RED) - run.ids(*RED)
        if (begin := id_prefix(test)) and any(name.startswith(begin) for name in passed)
    )


def not_loaded(before: CheckRun, now: CheckRun) -> frozenset[str]:
    """Return the tests that had a result before and can no longer be loaded."""
    scopes = tuple(begin for test in now.ids(*RED) - before.tests_with_result if (begin := id_prefix(test)))
    return frozenset(test for test in before.tests_with_result if scopes and test.startswith(scopes))


Files = Mapping[str, str]
"""Texts by path."""

_PARTS = re.compile(r"\w+|\W")

_NAME = re.compile(r"_?[A-Za-z][A-Za-z0-9_]{2,}")

_CALLED_FROM_OUTSIDE = frozenset(
    {
        *("main", "setup", "app", "application", "handler", "lambda_handler", "create_app"),
        *("make_app", "ready", "upgrade", "downgrade", "load_tests", "build_wheel", "build_sdist"),
        *("build_editable", "prepare", "run", "on_starting", "when_ready", "post_fork", "pre_fork"),
        *("load_ipython_extension", "get_version"),
    }
)

_PREFIXES = re.compile(
    r"(?:pytest_|test|Test|task_|setup|teardown|setUp|tearDown|get_requires_for|visit_|depart_|__)"
)


def is_renamed(before: Mapping[str, str], after: Mapping[str, str], names: Mapping[str, str]) -> bool:
    """Tell whether a change did nothing but give these names others.

    The texts are those of all files by path. A renamed thing is a function or class that one module defines,
    not decorated, and only called, imported and compared; or a parameter, a variable, an own attribute.
    """
    words = {word for path in before for word in re.findall(r"\w+", path)}
    is_clear = (
        before.keys() == after.keys()
        and all(map(_may_change, names, names.values()))
        and words.isdisjoint({*names, *names.values()})
        and not any(_says(text, names.values()) for text in before.values())
        and not any(_says(text, names) for text in after.values())
    )
    scripts = {name for name in names if is_function_of_scripts(name, before, is_document_path)}
    rest = {name: new for name, new in names.items() if name not in scripts}
    return is_clear and (not rest or _are_plain(rest, before))


def find_renaming(changes: tuple[ChangedTexts, ...]) -> dict[str, str]:
    """Return the one mapping of words that turns the old files into the new ones, if there is one."""
    found = dict[str, str]()
    for each in changes:
        is_told = each.is_whole and each.modes[0] == each.modes[1] and bool(each.before) and bool(each.after)
        old, new = _PARTS.findall(each.before), _PARTS.findall(each.after)
        is_read = each.path.endswith((".py", *SCRIPTS)) or is_document(each)
        if not is_told or len(old) != len(new) or not is_read:
            return {}
        for was, now in zip(old, new, strict=True):
            if was != now and found.setdefault(was, now) != now:
                return {}
    return found if len(set(found.values())) == len(found) else {}


def find_moved_module(before: Files, after: Files) -> dict[str, str]:
    """Return the old and the new name of the one module whose file has another name; else nothing.

    The file keeps its text and its folder, and everything that imports it does so by the new name.
    """
    gone, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    if len(gone) != 1 or len(new) != 1 or before[gone[0]] != after[new[0]]:
        return {}
    old, now = PurePosixPath(gone[0]), PurePosixPath(new[0])
    is_fit = old.suffix == now.suffix == ".py" and old.parent == now.parent and _is_free(now.stem)
    if not is_fit or not _is_free(old.stem) or _is_said(old, after) or _is_said(now, before):
        return {}
    try:
        return {old.stem: now.stem} if _is_alike(old, now, before, after) else {}
    except NO_PYTHON:
        return {}


def _may_change(old: str, new: str) -> bool:
    """Tell whether only the repository itself can use either name."""
    is_of_tests = old.startswith("test_") and new.startswith("test_")
    return all(
        _NAME.fullmatch(name)
        and (is_of_tests or not _PREFIXES.match(name))
        and not keyword.iskeyword(name)
        and not keyword.issoftkeyword(name)
        and not hasattr(builtins, name)
        and name not in _CALLED_FROM_OUTSIDE
        for name in (old, new)
    )


def _says(text: str, names: Iterable[str]) -> bool:
    words = "|".join(map(re.escape, names))
    return re.search(rf"(?<!\w)(?:{words})(?!\w)", text) is not None


def _are_plain(names: Mapping[str, str], texts: Mapping[str, str]) -> bool:
    """Tell whether every use of each name is known, and no code looks things up by name."""
    code = {path: text for path, text in texts.items() if path.endswith((".py", ".pyi"))}
    trees = {path: tree for path, text in code.items() if (tree := read_python(text))}
    if trees.keys() != code.keys():
        return False
    if any(reaches_by_name(tree) or not _names(tree).isdisjoint(names.values()) for tree in trees.values()):
        return False
    return all(is_plain(name, code, trees) for name in names)


def _names(tree: ast.Module) -> frozenset[str]:
    """Return the names in code as Python normalises them."""
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))


def _is_free(stem: str) -> bool:
    """Tell whether no program looks for a file of this name by itself."""
    return stem.isidentifier() and not re.match(
        r"_|test|conftest|setup|main|app|wsgi|asgi|manage|settings", stem
    )


def _is_said(place: PurePosixPath, texts: Files) -> bool:
    """Tell whether a text that is no document has a module's name where no import stands."""
    parts = [part for part in place.with_suffix("").parts if part != "src"]
    dotted = r"[./]".join(map(re.escape, parts)) if len(parts) > 1 else re.escape(place.stem)
    named = re.compile(rf"(?<![\w.]){dotted}(?!\w)|(?<!\w){re.escape(place.name)}(?!\w)")
    for path, text in texts.items():
        if not is_document_path(path) and path != str(place):
            said = "\n".join(_texts_in(text)) if path.endswith(".py") else text
            if named.search(said):
                return True
    return False


def _texts_in(text: str) -> list[str]:
    """Return the strings in code; of code that cannot be parsed, all of it."""
    tree = read_python(text)
    if tree is None:
        return [text]
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


def _is_alike(old: PurePosixPath, now: PurePosixPath, before: Files, after: Files) -> bool:
    """Tell whether all code is unchanged but for imports of the module by its new name."""
    for path in before.keys() & after.keys():
        if path.endswith(".py"):
            was, tree = ast.parse(before[path]), ast.parse(after[path])
            if reaches_by_name(was) or _reaches_otherwise(was, old.stem):
                return False
            _rename_imports(was, path, old, now)
            if ast.dump(was) != ast.dump(tree):
                return False
        elif before[path] != after[path] and not is_document_path(path):
            return False
    return not reaches_by_name(ast.parse(before[str(old)]))


def _reaches_otherwise(tree: ast.Module, stem: str) -> bool:
    """Tell whether code may reach the module as an attribute of its package."""
    nodes = tuple(ast.walk(tree))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    imports = (node.names for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))
    return stem in attributes or any(
        each.name.rpartition(".")[2] == stem for names in imports for each in names
    )


def _rename_imports(tree: ast.Module, path: str, old: PurePosixPath, now: PurePosixPath) -> None:
    module = ".".join(part for part in old.with_suffix("").parts if part != "src")
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            home = home_of(node, path.removeprefix("src/"))
            if home == module:
                node.module = node.module.removesuffix(old.stem) + now.stem
