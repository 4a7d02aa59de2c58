"""Repository to required checks: what must hold here, by language, and the command that shows it."""

import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from agentflow.checks.own_suite import runs_in_ci
from agentflow.checks.python import find_python_checks
from agentflow.checks.repository import (
    QUICK_LIMITS,
    Repository,
    merge_checks,
    require,
)
from agentflow.core.check_command import CommandPart, join_parts
from agentflow.core.evidence import Check, CheckName
from agentflow.core.languages import LANGUAGES, CheckRule, Language, gather
from agentflow.core.regex import compile_glob, regex
from agentflow.redact import list_some
from agentflow.runners.scripts import get_script, get_table, parse_manifest
from agentflow.runners.table import list_runners
from agentflow.sandbox.environment import find_program
from agentflow.sandbox.run import Sandbox

_NO_TEST = "no test specified"
"""The text that `npm init` writes in place of tests."""
CHECK_SCRIPTS = (
    (CheckName.LINT, "lint"),
    (CheckName.FORMAT, "format:check"),
    (CheckName.BUILD, "build"),
    (CheckName.TESTS, "test"),
)
"""The scripts of package.json that are checks."""
_LOOKING = (CheckName.LINT, CheckName.FORMAT)
_LOCAL_TSC = MappingProxyType(
    {"npm": "npx --no-install tsc", "pnpm": "pnpm exec tsc", "yarn": "yarn run tsc", "bun": "bun run tsc"}
)


_RUNTIMES = ((("deno.json", "deno.jsonc"), "deno"), (("bun.lock", "bun.lockb", "bunfig.toml"), "bun"))
_RUNTIME_TESTS = regex(r"(?:.*/)?(?:[^/]*[._])?(?:test|spec)\.[cm]?[jt]sx?")
"""The files in which those find tests."""
_CARGO = regex(r"^cargo \w+")
"""Beside a package at the root, cargo leaves the other members of a workspace out."""
_APART = regex(r"(?:^|/)(?:vendor|testdata|node_modules|[._][^/]*)/")
"""Folders that no tool of a language looks into."""
_USES = regex(r"(?m)^use[ \t]*(?:\(([^)]*)\)|[ \t](\S+))")
_LISTED = regex(r"(?m)^[ \t]*-[ \t]*[\"']?([^\"'\s#!][^\"'\s#]*)")
_COMMENT = regex(r"//[^\n]*")


def detect(
    sandbox: Sandbox,
    files: tuple[str, ...],
    settled: Collection[CheckName] = (),
    added: Collection[str] = (),
) -> tuple[Check, ...]:
    """Return the required checks, one a name, in the order they are run.

    `files` are those git does not ignore, relative to the root; no other is read. The check of a settled
    name is known already: no program is asked for it, and it may be left out. A folder that was added is
    tested by its own settings of pytest where those of the root leave it out.
    """
    checks = _find_all(sandbox, files, (), settled, added)
    return merge_checks(  # how code is formatted is a part of `lint`
        check.replace(name=CheckName.LINT) if check.name is CheckName.FORMAT else check for check in checks
    )


def detect_quick(sandbox: Sandbox, files: tuple[str, ...], changed: Collection[str]) -> tuple[Check, ...]:
    """Return what is run for a quick look: of the tests those that belong to changed files, if any do."""
    found = _find_all(sandbox, files, changed)
    chosen = merge_checks(check for check in found if check.name in QUICK_LIMITS)
    return tuple(check.replace(timeout=QUICK_LIMITS[check.name]) for check in chosen)


def limit_checks(checks: Iterable[Check], timeouts: Mapping[CheckName, float]) -> tuple[Check, ...]:
    return tuple(check.replace(timeout=timeouts.get(check.name, check.timeout)) for check in checks)


def _find_all(
    sandbox: Sandbox,
    files: tuple[str, ...],
    changed: Collection[str],
    settled: Collection[CheckName] = (),
    added: Collection[str] = (),
) -> list[Check]:
    repository = Repository(sandbox=sandbox, files=files, known=frozenset(files))
    found = [*find_python_checks(repository, changed, settled, added)]
    found += (*find_node_checks(repository), *find_table_checks(repository))
    if not any(check.name is CheckName.TESTS for check in found):
        for kind, name, _ in repository.tasks[:1]:  # nothing else tells of tests
            missing = _lacks(repository, kind.program, kind.hint)
            found.append(
                require(CheckName.TESTS, f"{kind.program} test", f"target 'test' in {name}", missing)
            )
    return found


def find_node_checks(repository: Repository) -> Iterator[Check]:
    package = repository.package
    if not package:
        yield from _find_own_runner(repository)
        return
    tool = repository.installer
    missing = _lacks(repository, tool, "install Node.js" if tool == "npm" else f"npm install -g {tool}")
    scripts = get_table(package, "scripts")
    for name, script in CHECK_SCRIPTS:
        is_npm_test = name is CheckName.TESTS and tool == "npm"
        if _is_script(scripts.get(script)):
            command = _script_alone(scripts) if is_npm_test else _script(tool, script)
            yield require(name, command, f"script {script!r} in package.json", missing)
            if is_npm_test and "posttest" in scripts:
                said = "script 'posttest' in package.json"
                yield require(CheckName.LINT, "npm run posttest", said, missing)
        elif name is CheckName.TESTS and (places := _list_tested(repository, tool)):
            reason = f"script {script!r} in {list_some(places)}"
            apart = (each.removesuffix("package.json") for each in places)
            parts = [CommandPart(command=_script(tool, "test"), folder=folder) for folder in apart]
            words = "npm test --workspaces --if-present" if tool == "npm" else join_parts(parts)
            yield require(name, words, reason, missing)
        elif name is CheckName.TESTS:
            yield from _find_own_runner(repository)
    typed = "typescript" in get_table(package, "dependencies") | get_table(package, "devDependencies")
    if typed and repository.has("tsconfig.json"):
        yield require(CheckName.TYPES, f"{_LOCAL_TSC[tool]} --noEmit", "tsconfig.json", missing)


def _script_alone(scripts: Mapping[str, object]) -> str:
    """Return how npm runs the tests without what follows them, which is no test.

    A linter before them is a check of its own; a build has to be there.
    """
    looking = [
        f"npm run {script}" for name, script in CHECK_SCRIPTS if name in _LOOKING and script in scripts
    ]
    before = scripts.get("pretest")
    if "posttest" not in scripts and before not in looking:
        return "npm test"
    return f"{'' if before in (None, *looking) else 'npm run pretest && '}npm test --ignore-scripts"


def _find_own_runner(repository: Repository) -> Iterator[Check]:
    for manifests, program in _RUNTIMES:
        if name := repository.find(*manifests):
            task = get_script(parse_manifest(repository.read(name)), "tasks")
            if task or any(map(_RUNTIME_TESTS.fullmatch, repository.files)):
                missing = _lacks(repository, program, f"npm install -g {program}")
                words = f"{program} task test" if task else f"{program} test"
                yield require(CheckName.TESTS, words, name, missing)
                return


def _list_tested(repository: Repository, tool: str) -> list[str]:
    said = repository.package.get("workspaces")
    globs = get_table(said).get("packages") if isinstance(said, dict) else said
    named = [each for each in globs if isinstance(each, str)] if isinstance(globs, list) else []
    named += _LISTED.findall(repository.read("pnpm-workspace.yaml")) if tool == "pnpm" else []
    patterns = [compile_glob(f"{each.removeprefix('./').rstrip('/')}/package.json") for each in named]
    found = (name for name in repository.files if any(each.fullmatch(name) for each in patterns))
    folders = (name.removesuffix("package.json") for name in found if not _APART.search(name))
    scripts = ((each, get_table(repository.within(each).package, "scripts")) for each in folders)
    return [f"{each}package.json" for each, said in scripts if _is_script(said.get("test"))]


def _is_script(body: object) -> bool:
    return isinstance(body, str) and bool(body.strip()) and _NO_TEST not in body


def find_table_checks(repository: Repository) -> Iterator[Check]:
    for language in (each for each in LANGUAGES if _list_rules(each)):
        for module, prefix in _find_modules(language, repository):
            has_tests = False  # of several ways to run them, the first that is there
            for rule in _list_rules(language):
                place = _place_of(rule, language, module)
                if place is not None and not (has_tests and rule.name is CheckName.TESTS):
                    has_tests |= rule.name is CheckName.TESTS
                    start, missing = _start(rule, module)
                    part = CommandPart(command=prefix + start, folder=module.folder)
                    yield require(rule.name, part.text, rule.reason or module.folder + place, missing)


def _list_rules(language: Language) -> list[CheckRule]:
    mine = (each for each in list_runners() if language.manifests and each.language == language.name)
    return [*language.rules, *(rule for runner in mine for rule in runner.rules)]


def _find_modules(language: Language, repository: Repository) -> Iterator[tuple[Repository, str]]:
    """Yield the root and each module below it that commands at the root leave out, with their begin.

    A module counts if it has tests, or if the workspace names it. Where a language knows no workspace, these
    are the outermost folders of modules, if the root itself says nothing of what it is.
    """
    ends = tuple(name[1:] if name.startswith("*") else f"/{name}" for name in language.manifests)
    below = (name for name in repository.files if "/" in name and name.endswith(ends))
    found = (name for name in below if not _APART.search(name))
    folders = list(dict.fromkeys(f"{posixpath.dirname(name)}/" for name in found))
    if not language.workspace:
        is_described = repository.find(*gather(lambda each: each.manifests)) or repository.tasks
        folders = [] if is_described else _list_outermost(folders)
    if not folders:
        yield repository, ""
        return
    named = frozenset(_read_workspace(repository.read(language.workspace)))
    for folder in ("", *folders):
        module = repository.within(folder, folders)
        if not folder or folder in named or _has_tests(language, module):
            yield module, language.outside if named and folder not in named else ""


def _list_outermost(folders: list[str]) -> list[str]:
    inner = {one for one in folders for other in folders if one != other and one.startswith(other)}
    return [each for each in folders if each not in inner]


def _has_tests(language: Language, module: Repository) -> bool:
    tests = (rule for rule in _list_rules(language) if rule.name is CheckName.TESTS)
    return any(_place_of(rule, language, module) is not None for rule in tests)


def _read_workspace(text: str) -> Iterator[str]:
    for block, alone in _USES.findall(_COMMENT.sub("", text)):
        for word in (block or alone).split():
            folder = posixpath.normpath(word.strip('"`'))
            yield "" if folder == "." else f"{folder}/"


def _place_of(rule: CheckRule, language: Language, repository: Repository) -> str | None:
    if not (manifest := repository.find(*rule.manifest)):
        return None
    program = rule.command.rpartition("&& ")[2].partition(" ")[0]
    if repository.has(*rule.unless) and not runs_in_ci(repository, program):
        return None
    settings = [name for name in rule.settings if repository.has(name)]
    tables = (get_table(repository.read_toml(name), *rule.table) for name in rule.manifest)
    if rule.settings and not (settings or (rule.table and any(tables))):
        return None
    if rule.files and not any(map(compile_glob(rule.files).fullmatch, repository.files)):
        return None
    programs = (name for name in repository.files if name.endswith(language.suffixes))
    if rule.says and not any(re.search(rule.says, repository.read(name)) for name in (manifest, *programs)):
        return None
    return settings[0] if settings else manifest


def _start(rule: CheckRule, repository: Repository) -> tuple[str, str | None]:
    if rule.wrapper and (repository.has(rule.wrapper) or (repository.place / rule.wrapper).is_file()):
        rest = rule.command.removeprefix(rule.programs[-1][0])
        return f"./{rule.wrapper}{rest}", _lacks(repository, *rule.runtime)
    file, launcher = rule.launcher
    if launcher and repository.has(file) and find_program(launcher.split()[0], repository.root):
        return f"{launcher} {rule.command}", None
    missing = (_lacks(repository, name, hint) for name, hint in rule.programs)
    is_workspace = rule.programs[0][0] == "cargo" and "workspace" in repository.read_toml("Cargo.toml")
    command = _CARGO.sub(r"\g<0> --workspace", rule.command) if is_workspace else rule.command
    return command, next(filter(None, missing), None)


def _script(tool: str, script: str) -> str:
    """Return how a script is run; `bun test` would be another thing than `bun run test`."""
    return f"{tool} test" if script == "test" and tool != "bun" else f"{tool} run {script}"


def _lacks(repository: Repository, name: str, hint: str) -> str | None:
    if find_program(name, repository.root):
        return None
    return f"{name}: {hint}" if hint else f"{name} is not installed"
