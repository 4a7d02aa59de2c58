"""What JavaScript leaves out where something is missing, and what types leave for no value."""

import pytest

from agentflow.verdict.probes.recording import record_change
from agentflow.workspace.mixed_tree import ChangedTexts


def rows(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def parts(after: str, path: str) -> list[str]:
    """Return the conditions and arms of a new file, each with its line; an arm has no text."""
    watched = record_change(ChangedTexts(path=path, before="", after=after), "kwq", 1)
    return [f"{part.line}: {part.text}".strip() for part in watched.parts] if watched else []


OMISSIONS = {
    "methods that may be missing": (
        "a.ts",
        rows("abstract class Item {", "  abstract read?(at: number): void;", "  size?(): number;", "}"),
        [],
    ),
    "what may be absent": (
        "a.ts",
        rows(
            "save(all[2]?.name, done?.(), all.done?.(), new Map()?.size, a?.b.c?.d(1), late?.[0]);",
            "if (all?.name) save(all?.name ?? 1, all?.size > 2);",
            "const few = all[2]?(0):all[2]?.5:(1);",
        ),
        [
            *("1: all[2] == null", "1: done == null", "1: a?.b.c == null", "1: late == null"),
            *("2: all?.name", "2: all?.name == null", "2: all?.size > 2", "3: all[2]", "3: all[2]"),
        ],
    ),
    "defaults of parts": (
        "a.js",
        rows("const { a = 1, b: c = 2, d: { e = 3 } } = all;", "all.map(({ f = 4 }) => f);", "{ g = 5; }"),
        ["1:", "1:", "1:", "2:", "2:"],
    ),
    "ends of what is tried": (
        "a.js",
        rows(
            "try {",
            "  load()",
            "  save()",
            "} catch {}",
            "try { load(); return 1; } catch {}",
            "try { load(); if (a) return 1; } catch {}",
            "try { load() } finally { save() }",
        ),
        ["1:", "5:", "6:", "6: a"],
    ),
    "bounds": (
        "a.js",
        rows("save(Math.min(a, f(b, 2)), Math.max(...all), Math.max(a), Math.min(a, b, c));"),
        ["1: Math.min(a, f(b, 2))", "1: Math.max(...all)"],
    ),
    "cuts": (
        "a.ts",
        rows(
            "for (const each of all!.names.slice(0, 100)) save(each, all.substring(1), a?.b.slice(0, 1));",
            "save(new Date().toISOString().slice(0, this.#few), all.slice(-2, -1), all.slice(0, f()));",
        ),
        [
            "1:",
            "1: a == null",
            "1: all!.names.slice(0, 100)",
            "2: new Date().toISOString().slice(0, this.#few)",
        ],
    ),
    "ends of loops": (
        "a.js",
        rows(
            "for (let at = 0; at < 9; at++) { if (a) { break; } }",
            "for (let at = 0; at < 8; at++) { for (const each of all) { break; } }",
            "for (let at = 0; at < 7; at++) { switch (b) { default: break; } do { break; } while (0) }",
            "for (;;) { break; }",
        ),
        ["1:", "1: a", "1: at < 9", "2:", "3:"],
    ),
    "defaults that are spread over": (
        "a.js",
        rows(
            "save({ ...none, ...all.of }, { a: 1, ...all }, { a, ...all }, { a: f(), ...all }, [...a, ...b])",
            "const { b: c, d, ...rest } = all;",
        ),
        ["1: { ...none, ...all.of }", "1: { a: 1, ...all }"],
    ),
    "numbers by a sign": (
        "a.js",
        "save(+Object.is(a, b), 1 + +c, +(d.e), 1 + f, +2, g++ + h);\n",
        ["1: Object.is(a, b)", "1: c", "1: d.e"],
    ),
    "what a function is called with": (
        "a.js",
        "if (!new.target) save(!new Map().size);\n",
        ["1: !new.target", "1: !new Map().size"],
    ),
    "what has no end": ("a.js", "a ||=", ["1:"]),
    "values that no type leaves": (
        "a.ts",
        rows(
            "import { never } from './never';",
            "function leave(kind: never): never { throw kind; }",
            "function neverLess(cents: number) { return cents; }",
            "switch (kind) { case 1: case 2: break; default: leave(kind); }",
            "switch (kind) { case 1: case 2: break; default: never(kind); }",
            "switch (kind) { case 1: case 2: break; default: never(other); }",
            "for (const each of all) { neverLess(each); }",
        ),
        ["3:", *(f"{line}:" for line in (4, 4, 5, 5, 6, 6, 6, 7))],
    ),
}


@pytest.mark.parametrize(("path", "after", "found"), OMISSIONS.values(), ids=OMISSIONS.keys())
def test_what_may_be_left_out_is_told_from_what_may_not(path: str, after: str, found: list[str]) -> None:
    assert sorted(parts(after, path)) == sorted(found)
