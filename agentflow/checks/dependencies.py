"""Dependencies: what a project names, what a change adds, and what this machine lacks to run the tests."""

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from agentflow.checks.import_errors import (
    describe_foreign_errors,
    find_foreign_errors,
)
from agentflow.checks.repository import INSTALLERS, Repository
from agentflow.core.evidence import CheckName, CheckRun, TestOutcome
from agentflow.core.record import Record
from agentflow.core.regex import compile_glob, regex
from agentflow.frontmatter import read_yaml
from agentflow.runners.import_errors import list_import_errors
from agentflow.runners.scripts import get_table
from agentflow.sandbox.run import NETWORK_FAILURE

_REMOTE = regex(
    r"\b(?:git|hg|svn|bzr)\+|\bgit@|://|^(?:github|gitlab|bitbucket|gist):|=>\s*\w|^[\w-]+/[\w.-]+(?:#|$)"
)
_PLACE = regex(r"(?:^|[\s:>@=])(\.{0,2}/\S*|\.\.(?=\s|$))")
_EXACT = regex(r"={0,3}\s*v?\d[\w.+!-]*")
_LOOSE = regex(r"$|[<>~^*!]|latest\b")
"""A spec that another version may fit tomorrow."""
_SHORT = 5
"""Names with fewer letters are near each other by chance."""
SCRIPT = "runs a script when it is installed"
_REQUIREMENT = regex(
    r"(?m)^[ \t]*(?P<name>(?:-e|--editable|-i|-f|--(?:extra-)?index-url|--find-links)(?=[ =])"
    r"|[A-Za-z0-9][\w.-]*(?=[\s\[=<>!~;@]|$)|(?=[./]|[\w+]+:))(?:\[[^\]\n]*\])?[ \t]*(?P<spec>[^\n]*)"
)
_REST = regex(r"[ \t]#|;|[ \t]--hash|\\$")
"""Signs that end a requirement on its line."""
_HOST = regex(r"\b(?:resolved|source|registry|tarball|url =)[^\n]{0,80}?(https?://[^/\s\"']+)")
_compile = cache(compile_glob)
_ELSEWHERE = ("git", "hg", "svn", "url", "path", "file", "directory")


class Doubt(Record):
    """A dependency to review, and the name by which a task may ask for it."""

    name: str
    said: str


class Difference(Record):
    """The change of the dependencies that one file names."""

    path: str
    added: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    damaged: bool = False
    """The file cannot be read, so nothing is known."""


class Manifest(Record):
    """The places where files of one kind name dependencies."""

    files: str
    form: Literal["toml", "json", "requirements", "lines"]
    at: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    line: str = ""
    locked: bool = False
    audit: str = ""


class KnownDependencies(Record):
    manifests: tuple[Manifest, ...]
    well_known: tuple[tuple[str, ...], ...]
    """Names that others are made to look like."""


class Stated:
    """One version of a file: names with their specs, what an install runs, from where a lock takes."""

    def __init__(self, manifest: Manifest, text: str) -> None:
        document = _document(manifest, text)
        self.specs: dict[str, str] = {}
        for name, spec in _read_names(manifest, text, document):
            known = self.specs.get(name)
            self.specs[name] = spec if known in (None, "", spec) else f"{known}, {spec}"
        found = ((hook, _at(document, tuple(hook.split(".")))) for hook in manifest.hooks)
        self.hooks = {hook: str(value) for hook, values in found for value in values}
        self.hosts = frozenset(_HOST.findall(text)) if manifest.locked else frozenset[str]()


def compare(path: str, before: str, after: str) -> Difference:
    """Return what is new, moved and gone in a manifest or lock file; empty text for no file."""
    manifest = find_manifest(path)
    assert manifest is not None
    try:
        old, new = Stated(manifest, before), Stated(manifest, after)
    except (ValueError, RecursionError):
        return Difference(path=path, damaged=True)
    names = sorted(old.specs.keys() | new.specs.keys())
    both = [name for name in names if name in old.specs and name in new.specs]
    return Difference(
        path=path,
        added=tuple(_describe_added(name, manifest, old, new) for name in names if name not in old.specs),
        moved=tuple(
            f"{name} from {old.specs[name] or 'any'} to {new.specs[name] or 'any'}"
            for name in both
            if old.specs[name] != new.specs[name]
        ),
        removed=tuple(name for name in names if name not in new.specs),
        doubts=tuple(
            doubt.replace(said=f"{path}: {doubt.said}") for doubt in _doubts(manifest, path, old, new)
        ),
    )


def _describe_added(name: str, manifest: Manifest, old: Stated, new: Stated) -> str:
    said = f"{name} {new.specs[name]}".strip()
    were_pinned = bool(old.specs) and all(map(_EXACT.fullmatch, old.specs.values()))
    is_loose = " " not in name and _LOOSE.match(new.specs[name]) and not manifest.locked
    return f"{said} (not pinned, as all others were)" if were_pinned and is_loose else said


def _doubts(manifest: Manifest, path: str, old: Stated, new: Stated) -> Iterator[Doubt]:
    """Yield what is new and comes from elsewhere, runs at once, or looks like something else."""
    for name, spec in new.specs.items():
        if old.specs.get(name) == spec:
            continue
        if _is_elsewhere(spec or name, path):
            yield Doubt(name=name.split()[-1], said=f"{name} {spec}".strip() + " is not from the registry")
        if SCRIPT in spec and SCRIPT not in old.specs.get(name, ""):
            yield Doubt(name=name, said=f"{name} {SCRIPT}")
        if name not in old.specs and not manifest.locked and (like := _looks_like(name, old)):
            yield Doubt(name=name, said=f"{name} is one letter from {like}: is it meant?")
    for hook, body in sorted(new.hooks.items() - old.hooks.items()):
        yield Doubt(name=hook, said=f"{hook} {SCRIPT}: {body}")
    for host in sorted(new.hosts - old.hosts if old.hosts else ()):
        yield Doubt(name=host, said=f"packages come from {host}, which none did before")


def _is_elsewhere(spec: str, path: str) -> bool:
    folder = posixpath.dirname(path)
    places = (posixpath.normpath(posixpath.join(folder, found)) for found in _PLACE.findall(spec))
    return bool(_REMOTE.search(spec)) or any(place.startswith(("..", "/")) for place in places)


def _looks_like(name: str, old: Stated) -> str | None:
    famous = {each for row in load_known().well_known for each in row}
    others = () if name in famous or len(name) < _SHORT else sorted({*famous, *old.specs})
    return next((other for other in others if len(other) >= _SHORT and _is_near(name, other)), None)


def _is_near(one: str, other: str) -> bool:
    """Return whether one letter is wrong, missing or too many, or two are swapped."""
    start = len(posixpath.commonprefix((one, other)))
    left, right = one[start:], other[start:]
    swapped = left[:2] == right[:2][::-1] and left[2:] == right[2:]
    return left != right and (left[1:] in (right, right[1:]) or left == right[1:] or swapped)


def choose_audit(path: str) -> str | None:
    """Return the command that asks about known vulnerabilities of what a file names; None where none can."""
    manifest = find_manifest(path)
    if manifest is None or not manifest.audit:
        return None
    folder = posixpath.dirname(path) or "."
    return manifest.audit.format(file=shlex.quote(path), folder=shlex.quote(folder))


def find_manifest(path: str) -> Manifest | None:
    """Return how a file names dependencies; None for one that names none."""
    return next((each for each in load_known().manifests if _compile(each.files).fullmatch(path)), None)


def _document(manifest: Manifest, text: str) -> Any:
    if manifest.form == "json":
        return json.loads(text or "{}")
    if manifest.form != "toml":
        return {}
    from tomllib import loads  # noqa: PLC0415  # only where there is one

    return loads(text)


def _read_names(manifest: Manifest, text: str, document: Any) -> Iterator[tuple[str, str]]:
    if manifest.form == "requirements":
        yield from _requirements(text)
    elif manifest.form == "lines":
        yield from ((found["name"], found["spec"].strip()) for found in re.finditer(manifest.line, text))
    for place in manifest.at:
        for value in _at(document, tuple(place.split("."))):
            yield from _read_list(value)


def _at(tree: Any, keys: tuple[str, ...]) -> Iterator[Any]:
    if not keys:
        yield tree
    elif isinstance(tree, Mapping):
        for key in tree if keys[0] == "*" else keys[:1]:
            if key in tree:
                yield from _at(tree[key], keys[1:])


def _read_list(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the names and specs of a list of requirements or packages, or of a table by names."""
    if isinstance(value, Mapping):
        named = ((name.rpartition("node_modules/")[2], spec) for name, spec in value.items())
        yield from ((name, _describe_version(spec)) for name, spec in named if name)
    for each in value if isinstance(value, list) else ():
        if isinstance(each, str):
            yield from _requirements(each)
        elif isinstance(each, Mapping) and "name" in each:
            yield str(each["name"]), _describe_version(each)


def _requirements(text: str) -> Iterator[tuple[str, str]]:
    for found in _REQUIREMENT.finditer(text):
        spec = _REST.split(found["spec"])[0].strip()
        name = found["name"]
        if name[:1].isalnum():
            yield re.sub(r"[-_.]+", "-", name).lower(), spec
        else:
            yield f"{name} {spec}".strip(), ""  # the address is all there is


def _describe_version(spec: Any) -> str:
    if not isinstance(spec, Mapping):
        return spec if isinstance(spec, str) else ""
    source = spec.get("source")
    merged = {**spec, **source} if isinstance(source, Mapping) else {**spec, "url": spec.get("url", source)}
    places = {key: str(merged[key]) for key in _ELSEWHERE if merged.get(key)}
    resolved = str(spec.get("resolved", ""))
    places |= {"git": resolved} if resolved.startswith("git") else {}
    words = [str(spec.get("version", "")), *(f"{key}: {value}" for key, value in places.items())]
    words += [SCRIPT] if spec.get("hasInstallScript") else []
    return " ".join(word for word in words if word and not word.startswith("url: registry+"))


@cache
def load_known() -> KnownDependencies:
    text = Path(__file__).with_name("dependencies.yaml").read_text("utf-8")
    return read_yaml(KnownDependencies, text, "dependencies.yaml")


_NOT_FOUND = 127
"""The exit code of a shell that does not find a command."""
_NOT_FOUND_IN_MAKE = regex(r"(?m)^make.*\bError 127$")
_PROGRAM = regex(
    r"(?m)^(?:.*: )?(?:(?:line )?\d+: (?P<name>[\w./@-]+): (?:command )?not found"
    r"|(?P<path>[\w./@-]+): No such file or directory)$"
)
_TOOL_VERSION = regex(r"Required version `[^`]+` does not match the running version `[^`]+`")
_PLUGIN = regex(
    r"(?m)^(?:.*: )?error: unrecognized arguments: (?P<options>--.*)$"
    r"|^ERROR: Missing required plugins: (?P<plugins>.*)$"
)
"""The errors by which pytest ends before any test if a plugin that its settings need is not installed."""
_USAGE = 4

Version = tuple[int, ...]


def read_required_python(repository: Repository) -> str:
    """Return what the repository says of the Python it runs on, such as `>=3.11`; or empty."""
    said = get_table(repository.read_toml("pyproject.toml"), "project").get("requires-python")
    older = repository.read_ini("setup.cfg").get("options", "python_requires", fallback="")
    return said if isinstance(said, str) else older


def find_blockage(
    run: CheckRun, output: str, repository: Repository, running: Version | None, task: str
) -> str:
    """Return the signature by which a check that is red is the machine's fault, or empty."""
    if run.check.missing is not None:
        return run.check.missing
    if run.evidence is None or run.green:
        return ""
    if why := _unable(run, output, repository):
        return why
    if run.check.name is not CheckName.TESTS:
        return ""
    wanted = read_required_python(repository)
    if wanted and running and not _fits(running, wanted):
        return f"requires-python {wanted}, running {'.'.join(map(str, running))}"
    errors = frozenset(run.import_errors.values()) if run.outcomes else list_import_errors(output)
    foreign = find_foreign_errors(errors, repository, task)
    is_whole = bool(run.outcomes) or len(foreign) == len(errors)  # all of the tests if they have no names
    return describe_foreign_errors(foreign, repository) if foreign and is_whole else ""


def _unable(run: CheckRun, output: str, repository: Repository) -> str:
    """Return why a check that told nothing of the code could not even begin, or empty."""
    # a test in error may be a whole package that did not load
    if run.tests_with_result - run.list_ids(TestOutcome.ERROR) or run.findings:
        return ""
    code = run.evidence.exit_code if run.evidence else None
    if code == _NOT_FOUND or _NOT_FOUND_IN_MAKE.search(output):
        names = [found["name"] or found["path"] for found in _PROGRAM.finditer(output)]
        wanting = [each for each in INSTALLERS if each in names]
        hint = f": {repository.installer} install" if repository.has("package.json") else ""
        hint = f": npm install -g {' '.join(wanting)}" if wanting else hint
        return f"{', '.join(dict.fromkeys(names)) or 'a program'} is not found{hint}"
    if version := _TOOL_VERSION.search(output):
        return version[0]
    if code == _USAGE and (lacking := _PLUGIN.search(output)):
        wanted = lacking["plugins"] or f"the one that knows {lacking['options']}"
        return f"a plugin of pytest is not installed: {wanted.strip()}"
    return "it needs the network (--network opens it)" if NETWORK_FAILURE.search(output) else ""


def _fits(running: Version, wanted: str) -> bool:
    """Return whether a version satisfies every clause; what is no list of clauses is taken as satisfied."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet  # noqa: PLC0415  # few checks need it

    try:
        return SpecifierSet(wanted).contains(".".join(map(str, running)), prereleases=True)
    except InvalidSpecifier:
        return True
