"""Which arguments make a usual program run, write or delete something."""

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from agentflow.core.record import Record
from agentflow.permissions.words import UNKNOWN, Word


class Danger(Record):
    """Arguments of a program that run, write or delete."""

    words: tuple[str, ...]
    """Whole words; a long flag also by any beginning of it, as many programs take it."""
    letters: str = ""
    """One-letter flags, also among others behind one dash."""


DANGERS: Mapping[str, Danger] = {
    "cargo": Danger(words=("--fix", "--config")),
    "eslint": Danger(
        words=(
            *("--fix", "--rulesdir", "--output-file", "--resolve-plugins-relative-to", "--config", "--init"),
            *("--plugin", "--parser", "--cache-file", "--cache-location", "--format"),
        ),
        letters="ocf",
    ),
    "fd": Danger(words=("--exec", "--exec-batch"), letters="xX"),
    "git": Danger(
        words=(
            *("-c", "-C", "--config-env", "--exec-path", "--git-dir", "--work-tree", "--exec", "--output"),
            *("--ext-diff", "--textconv", "--open-files-in-pager", "--upload-pack", "--receive-pack"),
            *("--filters", "--show-signature", "--edit-description", "--paginate"),
        ),
        letters="O",
    ),
    "flake8": Danger(words=("--output-file", "--config", "--append-config", "--tee", "--enable-extensions")),
    "go": Danger(
        words=("-exec", "-toolexec", "-vettool", "--toolexec", "--vettool", "-fix", "--fix", "-w", "-o")
    ),
    "gofmt": Danger(words=(), letters="w"),
    "mypy": Danger(
        words=(
            *("--install-types", "--python-executable", "--cache-dir", "--junit-xml", "--config-file"),
            *("--any-exprs-report", "--cobertura-xml-report", "--html-report", "--linecount-report"),
            *("--linecoverage-report", "--lineprecision-report", "--txt-report", "--xml-report"),
            *("--xslt-html-report", "--xslt-txt-report", "--shadow-file", "--write"),
        )
    ),
    "bandit": Danger(words=("--output", "--configfile", "--ini", "--baseline"), letters="oc"),
    "black": Danger(words=("--config", "--code"), letters="c"),
    "isort": Danger(words=("--settings-path", "--settings-file", "--config-root", "--resolve-all-configs")),
    "pylint": Danger(words=("--init-hook", "--load-plugins", "--output", "--rcfile", "--generate-rcfile")),
    "golangci-lint": Danger(words=("--fix", "--config", "--out-format", "--output"), letters="c"),
    "rubocop": Danger(
        words=("--autocorrect", "--autocorrect-all", "--auto-gen-config", "--require", "--plugin", "--out"),
        letters="aAxro",
    ),
    "tsc": Danger(
        words=("--outDir", "--outFile", "--declarationDir", "--build", "--init", "--generateTrace"),
        letters="b",
    ),
    "codespell": Danger(words=("--write-changes", "--config"), letters="wi"),
    "phpstan": Danger(words=("--autoload-file", "--configuration", "--generate-baseline"), letters="acb"),
    "cppcheck": Danger(
        words=("--addon", "--dump", "--output-file", "--plist-output", "--cppcheck-build-dir")
    ),
    "prettier": Danger(words=("--write", "--plugin"), letters="w"),
    "pyright": Danger(words=("--createstub", "--pythonpath", "--writebaseline", "--venvpath")),
    "pytest": Danger(
        words=(
            *("--basetemp", "--junitxml", "--junit-xml", "--log-file", "--debug", "--override-ini"),
            *("--pastebin", "--confcutdir", "--rootdir", "--config-file", "--cache-clear", "--pdb"),
        ),
        letters="opc",
    ),
    "rg": Danger(words=("--pre", "--hostname-bin", "--search-zip"), letters="z"),
    "ruff": Danger(
        words=(
            *("--fix", "--fix-only", "--unsafe-fixes", "--add-noqa", "--output-file", "--config"),
            "--cache-dir",
        ),
        letters="o",
    ),
    "sed": Danger(words=("--in-place", "--file", "--expression"), letters="if"),
    "sort": Danger(words=("--output", "--compress-program", "--temporary-directory"), letters="oT"),
    "tar": Danger(words=("--to-command", "--checkpoint-action", "--use-compress-program"), letters="IF"),
    "tree": Danger(words=("--output",), letters="oR"),
    "file": Danger(words=("--compile",), letters="C"),
    "date": Danger(words=("--set",), letters="s"),
    "awk": Danger(words=("--file", "--include", "--load", "--exec", "--inplace"), letters="fEilI"),
}
_PRINTING_SED = re.compile(
    r"""(?:(?:(?:\d+|\$|/[^/\n]*/)?(?:,(?:\d+|\$|/[^/\n]*/))?!?[pdq=]
    |s([/|\#,:@])(?:(?!\1)[^\\\n]|\\.)*\1(?:(?!\1)[^\\\n]|\\.)*\1[gpIi\d]*)(?:;\s*|$))+""",
    re.VERBOSE,
)
"""The scripts of sed that only select and print lines; others can write files and run commands."""
_PRINTING_AWK = re.compile(r"(?!.*(?:system|getline|close|fflush))[^|>@`]*", re.DOTALL)


def dangerous_argument(words: tuple[Word, ...]) -> str | None:
    """Return the first argument with which a usual program would run, write or delete something.

    One that may turn out to be any flag counts, unless it stands behind `--`.
    """
    program, *arguments = _without_python(words)
    name = PurePosixPath(program.text).name
    danger = DANGERS.get({"gawk": "awk", "mawk": "awk"}.get(name, name))
    if danger is None:
        return None
    found = next(
        (word for word in _flags(name, arguments) if word.loose or _is_among(word.text, danger)), None
    )
    if found is None and name in ("sed", "awk"):
        found = _bad_script(name, arguments)
    return None if found is None else found.text.replace(UNKNOWN, "…")


def _flags(name: str, arguments: list[Word]) -> Iterator[Word]:
    for word in arguments:
        if word.text == "--" and name not in ("find", "tar"):
            return
        if word.loose or word.text.startswith("-"):
            yield word


def _bad_script(name: str, arguments: list[Word]) -> Word | None:
    """Return the script of sed or awk when it may do more than print."""
    texts = [at for at, word in enumerate(arguments) if word.text in ("-e", "--expression")]
    scripts = [arguments[at + 1] for at in texts if at + 1 < len(arguments)]
    skipped = {at + 1 for at, word in enumerate(arguments) if name == "awk" and word.text in ("-F", "-v")}
    first = [word for at, word in enumerate(arguments) if not word.text.startswith("-") and at not in skipped]
    wanted = _PRINTING_SED if name == "sed" else _PRINTING_AWK
    return next(
        (word for word in scripts or first[:1] if not (word.is_known and wanted.fullmatch(word.text))), None
    )


def _without_python(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return `python -m tool …` as the tool's own command line."""
    is_module = re.fullmatch(r"python[\d.]*", PurePosixPath(words[0].text).name) and len(words) > 2
    return words[2:] if is_module and words[1].text == "-m" else words


def _is_among(word: str, danger: Danger) -> bool:
    name = word.partition("=")[0]
    if name.startswith("--"):
        return len(name) > 2 and any(flag.startswith(name) for flag in danger.words)
    return name in danger.words or any(letter in danger.letters for letter in name[1:])
