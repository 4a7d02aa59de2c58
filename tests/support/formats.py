"""What the published schemas ask of the formats that other programs read, as far as `verify` uses them.

JUnit XML: `junit-10.xsd` of the Jenkins xunit plugin, and of the older `JUnit.xsd` for Ant that a failure
has a type. SARIF: `sarif-schema-2.1.0.json` of OASIS. Both are written down here from their text.
"""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

_NUMBER = re.compile(r"\d+")
_TIME = re.compile(r"\d*(?:\.\d*)?")
_COUNTS = {"tests", "failures", "errors"}
_ATTRIBUTES: dict[str, tuple[set[str], set[str]]] = {
    "testsuites": (set(), {"name", "time", *_COUNTS}),
    "testsuite": ({"name", *_COUNTS}, {"time", "skipped", "timestamp", "hostname", "id", "package"}),
    "testcase": ({"name", "classname", "time"}, set()),
    "failure": ({"type"}, {"message"}),
    "error": ({"type"}, {"message"}),
    "skipped": (set(), {"type", "message"}),
    "system-out": (set(), set()),
}
"""The attributes of each element that it has to have, and those that it may."""
_CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["testcase", "system-out"],
    "testcase": ["skipped", "error", "failure"],
}
"""What may stand in an element, in this order."""

_LEVELS = ("none", "note", "warning", "error")
_SHAPES: dict[str, tuple[set[str], dict[str, Any]]] = {
    "log": ({"version", "runs"}, {"$schema": "uri", "version": ("2.1.0",), "runs": ["run"]}),
    "run": ({"tool", "results"}, {"tool": "tool", "results": ["result"]}),
    "tool": ({"driver"}, {"driver": "component"}),
    "component": ({"name"}, {"name": str, "version": str, "rules": ["rule"]}),
    "rule": ({"id"}, {"id": str, "shortDescription": "message"}),
    "result": (
        {"message"},
        {
            "ruleId": str,
            "level": _LEVELS,
            "message": "message",
            "locations": ["location"],
            "partialFingerprints": {str},
        },
    ),
    "message": ({"text"}, {"text": str}),
    "location": (set(), {"physicalLocation": "place"}),
    "place": ({"artifactLocation"}, {"artifactLocation": "artifact", "region": "region"}),
    "artifact": (set(), {"uri": "uri"}),
    "region": (set(), {"startLine": int}),
}
"""The properties of each object that it has to have, and what each may be: no other is allowed."""


def junit_problems(text: str) -> list[str]:
    """Return where a document is not what the schema of JUnit XML allows."""
    top = ET.fromstring(text)
    return list(_element(top)) if top.tag == "testsuites" else [f"begins with {top.tag}"]


def _element(element: ET.Element) -> Iterator[str]:
    needed, more = _ATTRIBUTES[element.tag]
    given = set(element.attrib)
    yield from (f"{element.tag} lacks {name}" for name in needed - given)
    yield from (f"{element.tag} has {name}" for name in given - needed - more)
    for name in given & {*_COUNTS, "skipped"}:
        if not _NUMBER.fullmatch(element.attrib[name]):
            yield f"{element.tag}: {name} is no number"
    if not _TIME.fullmatch(element.get("time", "")):
        yield f"{element.tag}: time is no time"
    allowed = _CHILDREN.get(element.tag, [])
    yield from (f"{child.tag} in {element.tag}" for child in element if child.tag not in allowed)
    places = [allowed.index(child.tag) for child in element if child.tag in allowed]
    yield from [f"{element.tag}: not in order"] if places != sorted(places) else []
    yield from (problem for child in element if child.tag in allowed for problem in _element(child))


def sarif_problems(log: Any) -> list[str]:
    """Return where a log is not what the schema of SARIF 2.1.0 allows."""
    return list(_value(log, "log", "log"))


def _value(value: Any, wanted: Any, where: str) -> Iterator[str]:
    match wanted:
        case "uri":
            yield from [] if _is_uri(value) else [f"{where}: no URI: {value}"]
        case str():
            yield from _shaped(value, wanted, where)
        case list():
            yield from (
                problem
                for place, each in enumerate(value)
                for problem in _value(each, wanted[0], f"{where}[{place}]")
            )
        case tuple():
            yield from [] if value in wanted else [f"{where}: {value} is not allowed"]
        case set():
            yield from (f"{where}.{key}: no text" for key, each in value.items() if type(each) is not str)
        case _:
            is_fit = type(value) is wanted and (wanted is not int or value >= 1)
            yield from [] if is_fit else [f"{where}: {value!r} is not allowed"]


def _shaped(value: Any, name: str, where: str) -> Iterator[str]:
    needed, known = _SHAPES[name]
    yield from (f"{where} lacks {key}" for key in sorted(needed - value.keys()))
    yield from (f"{where} has {key}" for key in sorted(value.keys() - known.keys()))
    for key in known.keys() & value.keys():
        yield from _value(value[key], known[key], f"{where}.{key}")


def _is_uri(value: str) -> bool:
    """Return whether a text is a URI reference of RFC 3986, without characters that it does not allow."""
    parts = urlsplit(value)
    return bool(re.fullmatch(r"(?:[\w.~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+", value, re.ASCII)) and (
        bool(parts.scheme) or ":" not in value.partition("/")[0]
    )
