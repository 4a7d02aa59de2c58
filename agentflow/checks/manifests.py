"""What a manifest or lock file says that a project depends on."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal

from agentflow.core.record import Record
from agentflow.core.regex import regex
from agentflow.frontmatter import read_yaml
from agentflow.workspace.globs import compile_glob

SCRIPT = "runs a script when it is installed"
_REQUIREMENT = regex(
    r"(?m)^[ \t]*(?P<name>(?:-e|--editable|-i|-f|--(?:extra-)?index-url|--find-links)(?=[ =])"
    r"|[A-Za-z0-9][\w.-]*(?=[\s\[=<>!~;@]|$)|(?=[./]|[\w+]+:))(?:\[[^\]\n]*\])?[ \t]*(?P<spec>[^\n]*)"
)
_REST = regex(r"[ \t]#|;|[ \t]--hash|\\$")
"""What ends a requirement on its line."""
_HOST = regex(r"\b(?:resolved|source|registry|tarball|url =)[^\n]{0,80}?(https?://[^/\s\"']+)")
_ELSEWHERE = ("git", "hg", "svn", "url", "path", "file", "directory")


class Manifest(Record):
    """Where files of one kind say what a project depends on."""

    files: str
    form: Literal["toml", "json", "requirements", "lines"]
    at: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    line: str = ""
    locked: bool = False
    audit: str = ""


class Known(Record):
    manifests: tuple[Manifest, ...]
    well_known: tuple[tuple[str, ...], ...]
    """Names that others are made to look like."""


def manifest_of(path: str) -> Manifest | None:
    """Return how a file names dependencies; None for one that names none."""
    return next((manifest for files, manifest in _patterns() if files.fullmatch(path)), None)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Manifest], ...]:
    return tuple((compile_glob(each.files), each) for each in known().manifests)


class Stated:
    """One version of a file: names with their specs, what an install runs, from where a lock takes."""

    def __init__(self, manifest: Manifest, text: str) -> None:
        document = _document(manifest, text)
        self.specs: dict[str, str] = {}
        for name, spec in _named(manifest, text, document):
            known = self.specs.get(name)
            self.specs[name] = spec if known in (None, "", spec) else f"{known}, {spec}"
        found = ((hook, _at(document, tuple(hook.split(".")))) for hook in manifest.hooks)
        self.hooks = {hook: str(value) for hook, values in found for value in values}
        self.hosts = frozenset(_HOST.findall(text)) if manifest.locked else frozenset[str]()


def _document(manifest: Manifest, text: str) -> Any:
    if manifest.form == "json":
        return json.loads(text or "{}")
    if manifest.form != "toml":
        return {}
    from tomllib import loads  # noqa: PLC0415  # only where there is one

    return loads(text)


def _named(manifest: Manifest, text: str, document: Any) -> Iterator[tuple[str, str]]:
    if manifest.form == "requirements":
        yield from _requirements(text)
    elif manifest.form == "lines":
        yield from ((found["name"], found["spec"].strip()) for found in re.finditer(manifest.line, text))
    for place in manifest.at:
        for value in _at(document, tuple(place.split("."))):
            yield from _listed(value)


def _at(tree: Any, keys: tuple[str, ...]) -> Iterator[Any]:
    if not keys:
        yield tree
    elif isinstance(tree, Mapping):
        for key in tree if keys[0] == "*" else keys[:1]:
            if key in tree:
                yield from _at(tree[key], keys[1:])


def _listed(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the names and specs of a list of requirements or packages, or of a table by names."""
    if isinstance(value, Mapping):
        named = ((name.rpartition("node_modules/")[2], spec) for name, spec in value.items())
        yield from ((name, _said(spec)) for name, spec in named if name)
    for each in value if isinstance(value, list) else ():
        if isinstance(each, str):
            yield from _requirements(each)
        elif isinstance(each, Mapping) and "name" in each:
            yield str(each["name"]), _said(each)


def _requirements(text: str) -> Iterator[tuple[str, str]]:
    for found in _REQUIREMENT.finditer(text):
        spec = _REST.split(found["spec"])[0].strip()
        name = found["name"]
        if name[:1].isalnum():
            yield re.sub(r"[-_.]+", "-", name).lower(), spec
        else:
            yield f"{name} {spec}".strip(), ""  # the address is all there is


def _said(spec: Any) -> str:
    """Return a version, and from where else than the registry it is taken."""
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
def known() -> Known:
    text = Path(__file__).with_name("dependencies.yaml").read_text("utf-8")
    return read_yaml(Known, text, "dependencies.yaml")
