"""What each path of a change is: product, document or check, by what ran and what leads where."""

import ast
from collections.abc import Collection, Mapping
from enum import StrEnum

from agentflow.checks.dependencies import manifest_of
from agentflow.core.evidence import Surface
from agentflow.core.languages import is_source
from agentflow.core.record import Record
from agentflow.verdict.equivalence import is_document_path
from agentflow.verdict.reach import find_check_only, find_holders, find_leads
from agentflow.verdict.shared_settings import is_shared
from agentflow.verdict.surface import Kind, kind_for_verdict

_TOPS = ("src/", "lib/")


class PathKind(StrEnum):
    """What a path of a change is to the verdict."""

    PRODUCT = "product"
    CHECK = "check"
    DOCUMENT = "document"


class ChangedPath(Record):
    """A path of a change with what it is, and why."""

    path: str
    kind: PathKind
    reason: str


class Observed(Record):
    """What observation tells beyond names: paths with reasons."""

    checks: Mapping[str, str] = {}
    product: Mapping[str, str] = {}
    both: tuple[str, ...] = ()
    """Of the checks, what code of the product reads as well."""


class Observation(Record):
    """A tree, and what a run of its checks read there."""

    files: frozenset[str]
    texts: Mapping[str, str]
    """Of sources, of checks and of manifests."""
    checks: frozenset[str]
    """What is a check by name or by settings."""
    by_code: frozenset[tuple[str, str]] = frozenset()
    """A file, and the file whose code read it; empty for a runner or a library."""
    opened: frozenset[str] = frozenset()
    new: frozenset[str] = frozenset()
    """The files that were not there before the task."""
    tests: frozenset[str] = frozenset()
    """The names of the tests that ran before the task."""
    loaded: frozenset[str] = frozenset()
    """The checks whose imports led somewhere before the task."""


def observe(seen: Observation) -> Observed:
    """Return what the files are that a run read, and the sources that only checks lead to."""
    leads = {path: set(named) for path, named in find_leads(seen.texts).items()}
    for path, reader in seen.by_code:
        if is_source(path) and reader in leads and path in leads:
            leads[reader].add(path)
    found = {path: frozenset(named) for path, named in leads.items()}
    scripts = {path for path in seen.opened & seen.texts.keys() if not is_source(path)}
    checks = dict(find_holders(seen.texts, found, seen.checks | scripts, seen.tests))
    checks |= find_check_only(seen.texts, found, seen.checks | scripts | checks.keys(), seen.new, seen.opened)
    checks |= find_shadows(seen.texts, seen.loaded, seen.new)
    product: dict[str, str] = {}
    judging = seen.checks | checks.keys()
    read = {path for path, _ in seen.by_code} | seen.opened
    for path in sorted((read & seen.files) - judging):
        if not (is_source(path) or is_shared(path) or manifest_of(path)):
            is_check, reason = _read_by(path, seen, judging)
            (checks if is_check else product)[path] = reason
    both = {path for path, reader in seen.by_code if path in checks and _is_product(reader, judging)}
    return Observed(checks=checks, product=product, both=tuple(sorted(both)))


def _is_product(reader: str, judging: Collection[str]) -> bool:
    return is_source(reader) and reader not in judging


def _read_by(path: str, seen: Observation, judging: Collection[str]) -> tuple[bool, str]:
    """Return whether a file that is no source is a check, as what reads it is, and the reason."""
    readers = sorted({reader for name, reader in seen.by_code if name == path and reader})
    first = next((reader for reader in readers if reader in judging), "")
    if first:
        return True, f"read by {first}"
    naming = _find_naming(path, seen.texts)
    checks = [each for each in naming if each in judging]
    others = [each for each in naming if _is_product(each, judging)]
    if readers:
        is_given = bool(checks) and not others
        return is_given, f"read by {readers[0]}" + (f", for {checks[0]}" if is_given else " and by no check")
    if others and not checks:
        return False, f"opened as the checks ran, and named by {others[0]} alone"
    return True, f"opened as the checks ran{f', and named by {checks[0]}' if checks else ''}"


def _find_naming(path: str, texts: Mapping[str, str]) -> list[str]:
    """Return the sources and checks that name a file."""
    name = path.rpartition("/")[2]
    return sorted(each for each, text in texts.items() if name in text and each != path)


def explain(path: str, surface: Surface) -> ChangedPath:
    """Return what a path of a change is; what cannot be shown to be product or document is a check."""
    kind = kind_for_verdict(path, surface)
    if kind is not None:
        reason = surface.observed.get(path, kind) if kind is Kind.OBSERVED else kind
        return ChangedPath(path=path, kind=PathKind.CHECK, reason=reason)
    is_document = is_document_path(path) and path not in surface.product
    return ChangedPath(
        path=path,
        kind=PathKind.DOCUMENT if is_document else PathKind.PRODUCT,
        reason=surface.product.get(path) or _usual_reason(path, is_document=is_document),
    )


def _usual_reason(path: str, *, is_document: bool) -> str:
    if is_document:
        return "nothing that ran reads it"
    if is_source(path):
        return "source that more than checks lead to"
    return "settings of the product; those of checkers stay" if is_shared(path) else "told by its name"


def find_shadows(
    texts: Mapping[str, str], loaded: Collection[str], new: Collection[str]
) -> Mapping[str, str]:
    """Return the new Python files in place of what checks imported before, each with the reason."""
    own = {_top_name(path) for path in texts if path not in new}
    found: dict[str, str] = {}
    for path in sorted(each for each in new if each.endswith(".py") and _top_name(each) not in own):
        users = (by for by in sorted(loaded) if _top_name(path) in _always_imported(texts.get(by, "")))
        if user := next(users, None):
            found[path] = f"in place of what {user} imported before"
    return found


def _top_name(path: str) -> str:
    """Return the first name by which a file of Python may be imported."""
    place = next((path.removeprefix(top) for top in _TOPS if path.startswith(top)), path)
    return place.partition("/")[0].removesuffix(".py")


def _always_imported(text: str) -> frozenset[str]:
    """Return the packages without which a file cannot be loaded."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    names = [each.name for node in body if isinstance(node, ast.Import) for each in node.names]
    names += [node.module or "" for node in body if isinstance(node, ast.ImportFrom) and not node.level]
    return frozenset(name.partition(".")[0] for name in names)
