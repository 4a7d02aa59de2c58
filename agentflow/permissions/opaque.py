"""Commands that run text which nobody has seen before they run."""

import re

from agentflow.permissions.words import Simple, TooComplex, Word, spelled

_RESERVED = frozenset(
    {
        *("{", "}", "!", "[[", "]]", "if", "then", "else", "elif", "fi", "for", "while", "until"),
        *("do", "done", "case", "esac", "function", "select", "in"),
    }
)
"""In the place of a program the parser has taken one for a word."""
SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "ash"})
INTERPRETERS = re.compile(r"(?:python|pypy)[\d.]*|node|perl|ruby|php|lua|deno|bun|R|Rscript|tclsh")
_OPAQUE = frozenset({"eval", "alias", "enable", "hash", "fc", "bind", "compgen", "complete", "coproc", "let"})
_OPAQUE_WITH = {
    "trap": re.compile(r".*\s.*|[^-\s]\S*"),
    "mapfile": re.compile("-C.*"),
    "readarray": re.compile("-C.*"),
    "printf": re.compile("-v.*"),
    "test": re.compile("-[vR]"),
    "[": re.compile("-[vR]"),
    "wait": re.compile("-p.*"),
    "jobs": re.compile("-x.*"),
    "env": re.compile("-S.*|--split-string.*|-[a-z]*S.*"),
    "set": re.compile(r"[-+][a-zA-Z]*[akv][a-zA-Z]*|allexport"),
    "shopt": re.compile("expand_aliases|extglob"),
}
"""Arguments with which a program runs or evaluates text that is not looked at."""
_EVALUATED = re.compile(r".*\[.*")
_NAMING = frozenset({"declare", "typeset", "local", "export", "readonly", "read", "unset", "getopts"})
_GIT_SETTING = re.compile(
    r"(?:user\.(?:name|email)|color\.[\w.]+|advice\.\w+|core\.quotepath|init\.defaultbranch"
    r"|commit\.gpgsign|diff\.(?:renames|algorithm|noprefix))=[^!]*|core\.pager=(?:cat)?",
    re.IGNORECASE,
)
_GIT_RUNS = re.compile(
    r"git (?:.* )?(?:foreach|filter-branch|bisect (?:.* )?run|--exec\b.*|--exec-path=.*)(?: .*)?"
)


def program_of(words: tuple[Word, ...]) -> str:
    """Return the bare name of a command's program."""
    return words[0].text.rpartition("/")[2] or words[0].text if words else ""


def require_clear(simple: Simple) -> None:
    """Refuse what runs text that nobody has seen."""
    words = simple.words
    if not words:
        return
    _require_program(words[0])
    name, texts = program_of(words), [word.text for word in words[1:]]
    opaque = _OPAQUE_WITH.get(name)
    if (name in _OPAQUE and texts) or (opaque and any(map(opaque.fullmatch, texts))):
        raise TooComplex(f"{name} evaluates text")
    if name in _NAMING and any(map(_EVALUATED.fullmatch, texts)):
        raise TooComplex("an index is evaluated")
    if name in (".", "source") and not (len(words) > 1 and words[1].is_known):
        raise TooComplex(f"{name} of a file that is known only when it runs")
    if name == "git":
        _require_plain_git(words)


def _require_plain_git(words: tuple[Word, ...]) -> None:
    at = 1
    while at < len(words) and words[at].text.startswith("-"):
        is_setting = words[at].text == "-c" and at + 1 < len(words)
        if words[at].text.startswith("-c") and not (
            is_setting and _GIT_SETTING.fullmatch(words[at + 1].text)
        ):
            raise TooComplex("git -c sets what can run programs")
        at += 2 if words[at].text in ("-c", "-C", "--git-dir", "--work-tree") else 1
    if _GIT_RUNS.fullmatch(spelled(words)):
        raise TooComplex("git runs a command line of its own")


def reads_program(simple: Simple) -> bool:
    """Tell whether a shell or interpreter is called without a program, so that its input is one."""
    name, texts = program_of(simple.words), [word.text for word in simple.words[1:]]
    if name not in SHELLS and not INTERPRETERS.fullmatch(name):
        return False
    return not texts or texts[0] == "-" or all(re.fullmatch("-[silu]+", text) for text in texts)


def _require_program(word: Word) -> None:
    if not word.is_known:
        raise TooComplex("which program it runs is known only when it runs")
    if word.text in _RESERVED:
        raise TooComplex(f"where {word.text} begins or ends is not clear")
