"""The commands of the explorer, where the sandbox prevents all their effects.

Files are safe by the sandbox alone. The rules here keep the explorer from running tests, builds and the
program itself, and explain early what would only fail.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from agentflow.core.regex import regex
from agentflow.permissions.reading_commands import (
    DANGERS,
    VARIANTS,
    find_dangerous_argument,
    is_obeyed,
    is_reading,
    is_reading_git,
)
from agentflow.permissions.shell_command import ShellWord, SimpleCommand, TooComplex
from agentflow.permissions.wrappers import (
    INTERPRETERS,
    RUNS_OTHERS,
    SHELLS,
    list_possible_commands,
    name_program,
)

_ALSO_READING = frozenset(
    {
        *("xxd", "hd", "zcat", "bzcat", "xzcat", "zstdcat", "zgrep", "bzgrep", "xzgrep", "zipinfo", "zless"),
        *("less", "more", "ps", "env", "printenv", "hostname", "free", "uptime", "lscpu", "locale", "who"),
        *("nm", "objdump", "readelf", "size", "yq", "xmllint", "bat", "batcat", "eza", "exa", "cloc", "scc"),
        *("tokei", "shuf", "numfmt", "base64", "base32", "b2sum", "sha224sum", "sha384sum", "sha512sum"),
        *("sum", "getconf", "pathchk", "tty", "arch", "groups", "logname", "whereis", "locate", "ag", "ack"),
        *("look", "iconv", "pr", "ptx", "factor", "bc", "dc", "cal", "man", "info", "apropos", "whatis"),
        *("lsb_release", "lsof", "pgrep", "pstree", "vmstat", "diff3", "sdiff", "colordiff", "wdiff"),
        *("fd", "fdfind", "gawk", "mawk", "nawk", "gsed", "dpkg-query", "getent", "ctags", "delta", "glow"),
        *("pygmentize", "msgcat", "gitk", "let", "local", "export", "declare", "set", "shopt", "typeset"),
        *("ldd", "lsattr", "namei", "zipgrep", "zdiff", "tldr", "gron", "dasel", "mdcat", "hexyl", "xsv"),
        "mlr",
        *("umask", "ulimit", "wait", "jobs", "unset", "history", "tput", "clear", "pushd", "popd", "dirs"),
    }
)
"""Beside those that a list of options keeps reading."""
_READING_WITH: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "tar": regex(r"-?[a-zA-Z]*t[a-zA-Z]*|-?[a-zA-Z]*xO[a-zA-Z]*|-?[a-zA-Z]*Ox[a-zA-Z]*|--list|--diff"),
        "unzip": regex(r"-[a-zA-Z0-9]*[lptvZ][a-zA-Z0-9]*"),
        "gzip": regex(r"-[a-zA-Z]*(?:c|l|t)[a-zA-Z]*|--(?:list|test|stdout)"),
        "7z": regex("l|t"),
        "pip": regex("list|show|freeze|check|inspect|debug|config|index"),
        "uv": regex("tree|version"),
        "npm": regex(
            "ls|list|ll|la|view|info|show|outdated|explain|why|root|prefix|query|fund|config|audit|search"
        ),
        "yarn": regex("list|why|info|workspaces|config|versions"),
        "pnpm": regex("ls|list|ll|why|root|outdated"),
        "go": regex("version|env|list|doc|vet|mod|help"),
        "cargo": regex("tree|metadata|version|pkgid|locate-project|search|info|help|--list"),
        "rustup": regex("show|which|toolchain"),
        "poetry": regex("show|version|about|check"),
        "conda": regex("list|info"),
        "composer": regex("show|info|validate|licenses|depends|why"),
        "bundle": regex("list|show|info|outdated"),
        "gem": regex("list|info|which|env|environment|contents"),
        "dotnet": regex("--info|--list-sdks|--list-runtimes|sln"),
        "brew": regex("list|info|deps"),
        "apt": regex("list|show|search|policy"),
        "apt-cache": regex(".*"),
        "dpkg": regex("-[lLsS]|--list|--listfiles|--status|--search"),
        "rpm": regex("-q.*"),
        "sqlite3": regex("-readonly|--readonly"),
        "openssl": regex("version|x509|dgst"),
        "bash": regex("-n"),
        "sh": regex("-n"),
    }
)
"""Programs that also write or run, and what their first word is where they read."""
_GIT = frozenset(
    {"help", "fsck", "verify-commit", "verify-tag", "merge-tree", "archive", "ls-remote", "check-mailmap"}
)
_PLACED = regex(r"-C|-c|--(?:git-dir|work-tree)(?P<value>=.*)?")
_PASSING = regex(r"/tmp/(?!.*\.\.)|/dev/(?:null|stderr|stdout)$|-")  # noqa: S108  # a command has its own
_TELLS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "stash": regex("list|show"),
        "worktree": regex("list"),
        "submodule": regex("status|summary|"),
        "remote": regex("show|get-url|-v|"),
        "notes": regex("list|show|"),
        "bisect": regex("log|view"),
        "reflog": regex("show|exists|(?!delete|expire).*"),
    }
)
"""Commands of git that also change something, and what follows them where they tell."""
_MAKES = regex(r"-[dDmMcCfuasF]|--(?:delete|move|copy|force|edit|set-|unset-|track|annotate|sign|file)")
_MODULES = frozenset(
    {
        *("json.tool", "site", "sysconfig", "platform", "tokenize", "ast", "dis", "pydoc", "calendar"),
        *("tabnanny", "pyclbr", "symtable", "this", "zipfile", "tarfile", "base64", "inspect", "keyword"),
    }
)
"""Of Python's own library: they print."""
_ASKING = (["--version"], ["-V"], ["--help"], ["version"])
_OWN_LANGUAGES = regex(r"node|ruby|perl|java|php|lua|go|rustc|cargo|npm|gcc|cc|clang|cmake|make|tsc|deno")
_INLINE = regex(r"-c.*|--eval.*|--print.*|-[a-zA-Z0-9]*[eErp]|-")
"""What makes an interpreter run text that stands in the command, or comes on its input."""
_RUNNING = frozenset(
    {
        *("pytest", "py.test", "nosetests", "nose2", "trial", "tox", "nox", "coverage", "hatch", "behave"),
        *("make", "gmake", "bmake", "cmake", "ctest", "ninja", "meson", "bazel", "buck", "scons", "waf"),
        *("gradle", "gradlew", "mvn", "mvnw", "ant", "sbt", "lein", "just", "task", "invoke", "rake", "thor"),
        *("npx", "bunx", "bun", "deno", "uvx", "pipx", "pipenv", "pdm", "rye", "mise", "direnv", "jest"),
        *("vitest", "mocha", "karma", "ava", "tap", "jasmine", "cypress", "playwright", "ts-node", "tsx"),
        *("webpack", "vite", "rollup", "esbuild", "parcel", "gulp", "grunt", "next", "nest", "ng"),
        *("phpunit", "pest", "rspec", "minitest", "cucumber", "bats", "prove", "busted", "swift"),
        "xcodebuild",
        *("docker", "podman", "docker-compose", "kubectl", "helm", "terraform", "ansible-playbook"),
        "vagrant",
        *("flask", "django-admin", "uvicorn", "gunicorn", "celery", "streamlit", "jupyter", "rails", "mix"),
        *("stack", "cabal", "dune", "opam", "zig", "nimble", "gcc", "g++", "cc", "c++", "clang", "clang++"),
        *("rustc", "javac", "java", "kotlinc", "scalac", "ghc", "go", "cargo", "vim", "vi", "nano"),
        *("ed", "ex", "emacs", "gdb", "lldb", "git-lfs", "pre-commit", "husky", "lerna", "nx", "turbo"),
        *("source", ".", "at", "batch", "crontab", "kill", "pkill", "killall", "xdg-open", "open"),
    }
)
"""Tests, builds and whatever else runs the repository's own code; a role that looks leaves that to others."""
_REACHING = frozenset(
    {
        *("curl", "wget", "nc", "ncat", "netcat", "telnet", "ftp", "sftp", "scp", "ping", "dig", "host"),
        "nslookup",
    }
)
_WRITING = frozenset(
    {
        *("touch", "rm", "mv", "cp", "ln", "mkdir", "rmdir", "chmod", "chown", "chgrp", "setfacl"),
        "truncate",
        *("install", "dd", "tee", "rsync", "patch", "shred", "unlink", "mkfifo", "mknod", "split", "csplit"),
        *("unlzma", "gunzip", "bunzip2", "unxz", "bzip2", "xz", "zip", "cpio", "ar", "chattr", "sponge"),
    }
)
_RUNS_TEXT = regex(r"""system\s*\(|\|\s*"|\|\s*getline|\|&|@load""")
_RUNS_LINE = regex(r"(?:^|[;{}\n!/\d$])\s*e(?:\s|$)|s([/|#,:@])(?:(?!\1).)*\1(?:(?!\1).)*\1[gpiImM\d]*e")
"""In a script of awk, and of sed: what runs a command."""
_SHOWN_AS_TEXT = regex(r"(?:GIT_|MAN)?PAGER|GIT_OPTIONAL_LOCKS|GIT_TERMINAL_PROMPT|LESS(?:CHARSET)?")


def find_bad_variable(simple: SimpleCommand) -> str | None:
    """Return a variable that is set and could make a reading program run something."""
    return next(
        (
            name
            for name, value in simple.assigned
            if is_obeyed(name)
            and not (_SHOWN_AS_TEXT.fullmatch(name) and value.text in ("cat", "", "0", "-R"))
        ),
        None,
    )


def is_only_looking(simple: SimpleCommand) -> bool:
    """Return whether a program, by its name and arguments, only reads."""
    name, texts = name_program(simple.words), [word.text for word in simple.words[1:]]
    if _is_of_repository(simple.words[0]):
        return False
    if is_reading(simple) or name in _ALSO_READING or (name == "tee" and _only_there(texts)):
        return True
    if name == "git":
        plain = _without_folder(simple.words)
        return is_reading_git(plain) or _lists(tuple(word.text for word in plain[1:]))
    if name == "find":
        return not any(text in ("-delete", "-fprint", "-fprint0", "-fprintf", "-fls") for text in texts)
    if texts in _ASKING or (texts in (["-v"], ["-version"]) and _is_language(name)):
        return True
    if INTERPRETERS.fullmatch(name) and texts[:1] == ["-m"]:
        rest = texts[1:]
        return rest[:1] in [[module] for module in _MODULES] or (
            rest[:1] == ["pip"] and _reads("pip", rest[1:])
        )
    return _reads(re.sub(r"[\d.]+$", "", name) if name.startswith("pip") else name, texts)


def _lists(texts: tuple[str, ...]) -> bool:
    """Return whether a git command only lists: by its name, or because it names nothing to make."""
    name, rest = texts[0] if texts else "", texts[1:]
    if name == "config":
        return len(rest) == 1 and not rest[0].startswith("-")
    if (told := _TELLS.get(name)) is not None:
        return told.fullmatch(rest[0] if rest else "") is not None
    is_bare = name in ("branch", "tag") and all(text.startswith("-") for text in rest)
    return name in _GIT or (is_bare and not any(map(_MAKES.match, rest)))


def explain_explorer_refusal(simple: SimpleCommand) -> str | None:
    """Return why a role that may run any program but the repository's own may not run this one."""
    if is_only_looking(simple):
        return None
    name, texts = name_program(simple.words), [word.text for word in simple.words[1:]]
    if INTERPRETERS.fullmatch(name):
        is_inline = not texts or any(map(_INLINE.fullmatch, texts[:3]))
        return None if is_inline and "-m" not in texts[:2] else "code of the repository is read, not run"
    is_running = name in _RUNNING or name in _READING_WITH or _is_of_repository(simple.words[0])
    is_writing = name in _WRITING and not _only_there(texts[-1:] if name in ("cp", "mv", "ln") else texts)
    reasons = (
        (name in SHELLS, "a script is read with cat, not run"),
        (
            is_running,
            "tests, builds and programs of the repository are for other roles; read the code instead",
        ),
        (name == "find", "find may only print; leave out its other options"),
        (name in RUNS_OTHERS and _runs_more(simple), "run the read-only program directly, without a wrapper"),
        (name in _REACHING, "there is no network"),
        (is_writing, "only /tmp can be written; print to the output instead"),
        (name == "git", "it changes the repository; git log, show, diff, blame and the like read it"),
    )
    return next((why for holds, why in reasons if holds), None)


def _runs_more(simple: SimpleCommand) -> bool:
    """Return whether a program that runs others may run one that a looking role does not."""
    try:
        inner = [words for words in list_possible_commands(simple) if words != simple.words]
    except TooComplex:
        return True
    return not inner or any(explain_explorer_refusal(simple.replace(words=words)) for words in inner if words)


def find_bad_argument(words: tuple[ShellWord, ...]) -> str | None:
    """Return an argument by which a reading program would run a command, or is told to write a file."""
    name = name_program(words)
    name = VARIANTS.get(name, name)
    if name in ("awk", "sed"):
        runs = _RUNS_TEXT if name == "awk" else _RUNS_LINE
        is_edited = name == "sed" and any(
            re.match(r"-[a-zA-Z]*i|--in-place", word.text) for word in words[1:]
        )
        return next((word.text for word in words[1:] if runs.search(word.text) or is_edited), None)
    if name not in DANGERS:
        return None
    known = tuple(word.replace(loose=False) for word in (_without_folder(words) if name == "git" else words))
    return find_dangerous_argument(known)


def _only_there(texts: list[str]) -> bool:
    """Return whether files lie in the temporary folder, which is a command's own."""
    return all(map(_PASSING.match, texts))


def _reads(name: str, texts: list[str]) -> bool:
    wanted = _READING_WITH.get(name)
    given = [
        text for text in texts if name in ("tar", "7z") or text not in ("-q", "--quiet", "-s", "--silent")
    ]
    return wanted is not None and bool(given) and wanted.fullmatch(given[0]) is not None


def _is_language(name: str) -> bool:
    return _OWN_LANGUAGES.fullmatch(name) is not None or INTERPRETERS.fullmatch(name) is not None


def _is_of_repository(program: ShellWord) -> bool:
    """Return whether a program is named by a path that is not one of the system's."""
    is_system = re.match(r"/(?:usr/|opt/|s?bin/)", program.text) and ".." not in program.text
    is_known = re.fullmatch(r"(?:.*/)?(?:\.venv|venv|env)/bin/(?:python|pip)[\d.]*", program.text)
    return "/" in program.text and not is_system and not is_known


def _without_folder(words: tuple[ShellWord, ...]) -> tuple[ShellWord, ...]:
    """Return a git command without its folder, and without settings, which are known to be harmless."""
    at = 1
    while at + 1 < len(words) and (found := _PLACED.fullmatch(words[at].text)):
        at += 1 if found["value"] else 2
    return (words[0], *words[at:])
