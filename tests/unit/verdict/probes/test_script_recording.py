"""Changed JavaScript and TypeScript tells which of its conditions and arms are tried."""

import re
import subprocess
from pathlib import Path

import pytest

from agentflow.verdict.probes.recording import record_change
from agentflow.workspace.mixed_tree import ChangedTexts

RIGHT, WRONG = "Math.ceil(total / size)", "Math.floor(total / size)"
BEFORE = f"function pages (total, size) {{\n  return {WRONG}\n}}\n\nmodule.exports = {{ pages }}\n"
CALLS = "pages(7, 3); pages(6, 3)"
TYPES = re.compile(
    r"<T>|\??: (?:number|boolean|string|T|\(.*?\) => \w+)(?:\[\])?(?=[,);= ])| as const\b|(?<=\w)!(?= < )"
)
needs_node = pytest.mark.needs("node")


def body(*lines: str) -> str:
    return BEFORE.replace(f"  return {WRONG}\n", "".join(f"  {line}\n" for line in lines))


def untried(folder: Path, after: str, *calls: str, before: str = BEFORE, path: str = "pages.js") -> list[str]:
    """Return what calls, each in a process of its own, leave untried; types are taken out before."""
    watched = record_change(ChangedTexts(path=path, before=before, after=after), "kwq", 1)
    if watched is None:
        return []
    text = TYPES.sub("", watched.text) if path.endswith(".ts") else watched.text
    folder.joinpath("pages.js").write_text(text, "utf-8")
    for call in calls or (CALLS,):
        code = f"const {{ pages }} = require('./pages.js'); {call}"
        subprocess.run(["node", "-e", code], cwd=folder, check=True)
    left = [each.name for each in folder.iterdir()]
    assert watched.is_loaded(left)
    return [f"{hunk.line}: {hunk.wanted}" for hunk in watched.list_untried(left)]


def rows(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def parts(after: str, path: str) -> list[str]:
    """Return the conditions and arms of a new file, each with its line; an arm has no text."""
    watched = record_change(ChangedTexts(path=path, before="", after=after), "kwq", 1)
    return [f"{part.line}: {part.text}".strip() for part in watched.parts] if watched else []


EARLY = "in which `process.uptime() < 60` is false"
WRONG_SOMEWHERE = {
    "a conditional": (body(f"return process.uptime() < 60 ? {RIGHT} : {WRONG}"), [f"2: {EARLY}"]),
    "beside letters of two units": (
        body(f"const name = '💶ü'; return process.uptime() < 60 ? {RIGHT} : {WRONG}"),
        [f"2: {EARLY}"],
    ),
    "a return": (body(f"if (process.uptime() < 60) return {RIGHT}", f"return {WRONG}"), [f"2: {EARLY}"]),
    "over several lines": (
        body("return total &&", "  process.uptime() < 60", f"  ? {RIGHT}", f"  : {WRONG}"),
        ["2: in which `total` is false", f"3: {EARLY}"],
    ),
    "what is set": (
        body("if (total & 1 | process.pid) return 3", f"return {RIGHT}"),
        ["2: in which `total & 1 | process.pid` is false"],
    ),
    "what is missing": (body(f"return total ?? {WRONG}"), ["2: in which `total == null` is true"]),
    "what is there": (
        body(f"return process.env.PAGER_ROWS ?? {RIGHT}"),
        ["2: in which `process.env.PAGER_ROWS == null` is false"],
    ),
    "what is missing and set": (body(f"total ||= {WRONG}", f"return {RIGHT}"), ["2: that runs this"]),
    "in a template": (
        body(f"return `${{process.uptime() < 60 ? `${{{RIGHT}}}` : {WRONG}}}`"),
        [f"2: {EARLY}"],
    ),
    "behind a pattern": (
        body(f"return 'a/\\'b'.match(/[/'\"]/) && process.uptime() < 60 ? {RIGHT} : {WRONG} / 2 / 1"),
        ["2: in which `'a/\\'b'.match(/[/'\"]/)` is false", f"2: {EARLY}"],
    ),
    "behind a block": (
        body("{ total += 0 } total > 1 && Math", f"return {RIGHT}"),
        ["2: in which `total > 1` is false"],
    ),
    "behind a condition": (
        body("if (size > 2) total > 1 && Math", f"return {RIGHT}"),
        ["2: in which `size > 2` is false", "2: in which `total > 1` is false"],
    ),
    "of a private field": (
        "class A { #all = 0\n get none () { return !this.#all } }\nexports.pages = () => new A().none\n",
        ["2: in which `!this.#all` is false"],
    ),
    "what may be missing": (
        body(f"return !process.argv?.[0]?.at?.(0) ? {WRONG} : {RIGHT}"),
        ["2: in which `!process.argv?.[0]?.at?.(0)` is true"],
    ),
    "in a handler": (
        body("try {", f"  return {RIGHT}", "} catch {", "  return 0", "}"),
        ["4: that runs this"],
    ),
    "in a case": (
        body("switch (total) {", "  case 77:", "    return 0", f"  default: return {RIGHT}", "}"),
        ["3: that runs this"],
    ),
    "in a loop": (
        body("for (const each of []) {", "  total = each", "}", f"return {RIGHT}"),
        ["2: that runs this"],
    ),
    "in a loop without braces": (
        body("for (const each of []) total = each", f"return {RIGHT}"),
        ["2: that runs this"],
    ),
    "in a case that does nothing": (
        body(f"let all = {RIGHT}", "switch (total) { case 77: break; default: all += 0 }", "return all"),
        ["3: that runs this"],
    ),
    "what is there, said twice": (
        body(f"return {RIGHT} * (1 - !!process.argv[9])"),
        ["2: in which `!!process.argv[9]` is true"],
    ),
    "whether there is a key": (
        body(f"return {RIGHT} * (1 - (9 in process.argv))"),
        ["2: in which `9 in process.argv` is true"],
    ),
    "beside a name that is a word elsewhere": (
        body("const of = 2", f"return process.uptime() < 60 ? {RIGHT} * of / 2 : {WRONG}"),
        [f"3: {EARLY}"],
    ),
    "behind a pattern that begins a line": (
        body("if (size < 1) {", "  total = 1", "}", "/'/.test(total)", f"return {RIGHT}"),
        ["2: in which `size < 1` is true"],
    ),
    "in another function": (
        body(f"return {RIGHT}") + "\nfunction spare () {\n  return 3\n}\n",
        ["7: that runs this"],
    ),
    "in a function of one line": (
        body(f"const of = {{ odd: each => 0, even: () => {RIGHT} }}", "return of.even()"),
        ["2: that runs this"],
    ),
    "a bound": (body(f"return Math.min({RIGHT}, 99)"), [f"2: in which `Math.min({RIGHT}, 99)` is `99`"]),
    "a lower bound": (body(f"return Math.max(2, {RIGHT})"), [f"2: in which `Math.max(2, {RIGHT})` is `2`"]),
}  # fmt: skip


@needs_node
@pytest.mark.parametrize(("after", "told"), WRONG_SOMEWHERE.values(), ids=WRONG_SOMEWHERE.keys())
def test_a_part_of_new_code_that_no_call_tries_is_told_by_its_place(
    tmp_path: Path, after: str, told: list[str]
) -> None:
    assert untried(tmp_path, after) == told


OLD = body("if (size < 1) {", "  throw new Error('size')", "}", f"return {WRONG}")
TRIED = {
    "no branch": (BEFORE, body(f"return {RIGHT}")),
    "both ways": (BEFORE, body("if (total % size === 0) {", "  return total / size", "}", f"return {RIGHT}")),
    "both ways, and words behind": (BEFORE, body(f"return total % size ? {RIGHT} : {WRONG} // ? : {{}}")),
    "both of a bound": (BEFORE, body("return Math.max(total % size, 0.5)")),
    "nothing to do": (BEFORE, body(f"const log = () => {{}}; try {{ log() }} catch {{}} return {RIGHT}")),
    "for ever": (BEFORE, body("while (true) {", f"  return {RIGHT}", "}")),
    "nothing but the end of a switch": (
        BEFORE,
        body("switch (total) {", "  case 6:", "  case 8: total += 0", "  default: break", "}", RIGHT),
    ),
    "a condition that was there": (
        body("if (total > 1) total += 0", f"return {WRONG}"),
        body("if (total > 1) total += 1 - 1", f"return {RIGHT}"),
    ),
    "a branch that was there": (OLD, OLD.replace("floor", "ceil")),
    "a branch that is indented otherwise": (OLD, OLD.replace("  ", "    ").replace("floor", "ceil")),
    "a function that moves": (
        OLD.replace("module", "function spare () {\n  return 3\n}\n\nmodule"),
        "function spare () {\n  return 3\n}\n\n" + OLD.replace("floor", "ceil"),
    ),
    "started": (
        BEFORE,
        body(f"return {RIGHT}") + "\nconst main = () => pages(7, 3)\nmain()\n"
        "\nif (require.main === module) {\n  main()\n}\n",
    ),
}  # fmt: skip


@needs_node
@pytest.mark.parametrize(("before", "after"), TRIED.values(), ids=TRIED.keys())
def test_what_calls_try_is_told_by_nobody(tmp_path: Path, before: str, after: str) -> None:
    assert untried(tmp_path, after, before=before) == []


@needs_node
def test_what_one_of_several_processes_tries_is_tried(tmp_path: Path) -> None:
    after = body("if (total % size === 0) {", "  return total / size", "}", f"return {RIGHT}")
    assert untried(tmp_path, after, "pages(7, 3)") == ["2: in which `total % size === 0` is true"]
    assert untried(tmp_path, after, "pages(7, 3)", "pages(6, 3)") == []


@needs_node
def test_a_program_that_ends_itself_before_its_last_line_is_loaded(tmp_path: Path) -> None:
    assert untried(tmp_path, "if (process.argv.length < 9) process.exit()\n") == [
        "1: in which `process.argv.length < 9` is false"
    ]


@needs_node
def test_code_with_types_does_what_it_did_and_tells_what_is_untried(tmp_path: Path) -> None:
    after = """\
function pages (total: number, size: number): number {
  const kinds = [size, total] as const;
  const few: boolean = kinds.length > 1 && size! < 9;
  switch (total) {
    case 7:
      return few ? Math.ceil(total / size) : 0;
    default: {
      const half = (all: number): number => all / 2;
      return process.stdout.isTTY ? half(total) : 2;
    }
  }
}
module.exports = { pages };
"""
    assert untried(tmp_path, after, path="pages.ts") == [
        "3: in which `kinds.length > 1` is false",
        "3: in which `size! < 9` is false",
        "6: in which `few` is false",
        "8: that runs this",
        "9: in which `process.stdout.isTTY` is true",
    ]


NO_CONDITIONS = {
    "types that are given": (
        "a.ts",
        rows("const all = new Map<string, Array<number>>();", "load<A, B>(all, 1);"),
    ),
    "types that are chosen": (
        "a.ts",
        rows(
            "type Kind<T> = T extends (infer U)[] | null ? U : T extends { a: infer A }",
            "  ? A",
            "  : never;",
        ),
    ),
    "what may be missing": (
        "a.ts",
        rows(
            "interface Item {",
            "  name?: string;",
            "  read?(at: number): void;",
            "  [key: string]?: A;",
            "}",
            "declare function load(name?: string, ...rest: [number?]): { ok: boolean };",
        ),
    ),
    "what is not missing": ("a.ts", rows("let last!: string;", "save(last!, items[0]!.name);")),
    "types of functions": (
        "a.ts",
        rows(
            "type Read = (at: number) => string | undefined;",
            "let read: (at: number) => void;",
            "interface All {",
            "  each: (at: number) => boolean;",
            "}",
            "const of = new Map<string, () => void>();",
        ),
    ),
    "types over several lines": (
        "a.ts",
        rows(
            "const all = load as unknown as Record<",
            "  string,",
            "  { due: () => void }",
            ">;",
            "declare const make: <",
            "  T extends object = A,",
            ">(value: T) => { value: T };",
        ),
    ),
    "a value that cannot be": (
        "a.ts",
        rows("export function fail(kind: never): never {", "  throw new Error(kind);", "}"),
    ),
    "words of markup": (
        "a.tsx",
        rows('const page = <p title="a > b ? c">', "  a && b {/* c || d */} it's !e", "</p>;"),
    ),
    "an assertion": ("a.ts", "assert(total > 0);\n"),
    "the start of a program": ("a.js", "const isMain = require.main === module;\n"),
    "a loop": ("a.js", "for (let at = 0; at < 3; at++);\n"),
    "what is no code": ("a.ts", "if (a > b) save(`${;\n"),
    "what nearly is markup, many times over": ("a.tsx", f"if (a > b) save({'<A>{' * 60}\n"),
    "what no bracket closes": ("a.ts", "if (a > (b) {}\n"),
}


@pytest.mark.parametrize(("path", "after"), NO_CONDITIONS.values(), ids=NO_CONDITIONS.keys())
def test_types_and_words_are_no_conditions(path: str, after: str) -> None:
    assert parts(after, path) == []


CONDITIONS = {
    "of markup": (
        "a.tsx",
        rows(
            "const Page = ({ all }: Props) => (",
            "  <Row<Item> wide={all.length > 3} {...(all.tall && { a: 1 })}>",
            "    it's {all.name ?? <b>none</b>}",
            "    {all.done && <i />}</Row>",
            ");",
        ),
        ["2: all.length > 3", "2: all.tall", "3: all.name == null", "4: all.done", "1:"],
    ),
    "of markup without types": (
        "a.jsx",
        "export const Page = ({ all }) => <>{all < 3 ? <b>few</b> : 'many'}</>;\n",
        ["1: all < 3", "1:"],
    ),
    "of keys": (
        "a.ts",
        rows(
            "function of(a: string, b: Kind) {",
            "  if (a in b) return a in b.all && !!b[a];",
            "  for (const each in b) if (each in a) save(each);",
            "}",
        ),
        ["1:", "2: a in b", "2: a in b.all", "2: !!b[a]", "3: each in a"],
    ),
    "behind types": (
        "a.ts",
        "const few = (load<A, B>(all) as number) < 3 && of<C>(b) <= 1;\n",
        ["1: (load<A, B>(all) as number) < 3", "1: of<C>(b) <= 1"],
    ),
    "without blanks": (
        "a.ts",
        rows(
            "const few = rate(all.length<3) * load<A<B>>(all)[+((of.size)>2)];",
            "const none = of.extends ? .0 : 1;",
            "type Kind = { [key in Name]?: Map<A, Map<B, 3>> };",
        ),
        ["1: all.length<3", "1: (of.size)>2", "2: of.extends"],
    ),
    "of functions with types": (
        "a.ts",
        rows(
            "class A extends mix(B) implements C {",
            "  get(at: number): Promise<{ a: D } | E[]> {",
            "    return !this.all!.b;",
            "  }",
            "}",
            "export const of: Record<string, (at: number) => number> = {",
            "  odd: (at: number): number => at,",
            "  even(at): number { return at; },",
            "};",
            "all.each(async (at) => at);",
            "const f = (a: B): a is C => a.b;",
        ),
        ["3: !this.all!.b", "2:", "7:", "8:", "10:", "11:"],
    ),
    "of kinds": (
        "a.ts",
        rows(
            "function of(kind: Kind): string {",
            "  switch (kind) {",
            "    case 'a': {",
            "      return b;",
            "    }",
            "    default: {",
            "      const left: never = kind;",
            "      throw new Error(left);",
            "    }",
            "  }",
            "}",
        ),
        ["1:", "3:"],
    ),
}


@pytest.mark.parametrize(("path", "after", "found"), CONDITIONS.values(), ids=CONDITIONS.keys())
def test_conditions_and_arms_are_told_from_types_and_words(path: str, after: str, found: list[str]) -> None:
    assert sorted(parts(after, path)) == sorted(found)


def test_a_compiler_is_not_asked_about_the_types_of_what_records() -> None:
    change = ChangedTexts(path="a.ts", before="", after="#!/usr/bin/env tsx\nsave(a > b);\n")
    watched = record_change(change, "kwq", 1)
    assert watched is not None
    assert watched.text.splitlines()[:2] == ["#!/usr/bin/env tsx", "// @ts-nocheck"]


@needs_node
def test_code_that_a_compiler_writes_elsewhere_tells_it_where_the_tests_run(tmp_path: Path) -> None:
    change = ChangedTexts(path="src/pages.ts", before="", after="exports.few = process.argv.length < 9;\n")
    watched = record_change(change, "kwq", 1)
    assert watched is not None
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/pages.js").write_text(TYPES.sub("", watched.text), "utf-8")

    subprocess.run(["node", "dist/pages.js"], cwd=tmp_path, check=True)

    assert sorted(each.name for each in tmp_path.glob("kwq-*")) == ["kwq-0-r", "kwq-1-1"]
