"""Whether a change does nothing but give things other names: told by all texts of both trees."""

import ast
import builtins
import keyword
import re
from collections.abc import Iterable, Mapping

from agentflow.verdict.equivalence import is_document
from agentflow.verdict.name_uses import is_plain, reaches_by_name
from agentflow.workspace.mixed_tree import Texts

_PARTS = re.compile(r"\w+|\W")
_NAME = re.compile(r"_?[A-Za-z][A-Za-z0-9_]{2,}")
_CALLED_FROM_OUTSIDE = frozenset(
    {
        *(
            "main",
            "setup",
            "app",
            "application",
            "handler",
            "lambda_handler",
            "create_app",
            "make_app",
            "ready",
        ),
        *(
            "upgrade",
            "downgrade",
            "load_tests",
            "build_wheel",
            "build_sdist",
            "build_editable",
            "prepare",
            "run",
        ),
        *("on_starting", "when_ready", "post_fork", "pre_fork", "load_ipython_extension", "get_version"),
    }
)
_PREFIXES = re.compile(
    r"(?:pytest_|test|Test|task_|setup|teardown|setUp|tearDown|get_requires_for|visit_|depart_|__)"
)


def is_renamed(before: Mapping[str, str], after: Mapping[str, str], names: Mapping[str, str]) -> bool:
    """Tell whether a change did nothing but give these names others.

    The texts are those of all files by path. A renamed thing is a function or class that one module defines,
    not decorated, and only called, imported and compared; or a parameter, a variable, an own attribute.
    """
    words = {word for path in before for word in re.findall(r"\w+", path)}
    is_clear = (
        before.keys() == after.keys()
        and all(map(_may_change, names, names.values()))
        and words.isdisjoint({*names, *names.values()})
        and not any(_says(text, names.values()) for text in before.values())
        and not any(_says(text, names) for text in after.values())
    )
    return is_clear and _are_plain(names, before)


def name_mapping(changes: tuple[Texts, ...]) -> dict[str, str]:
    """Return the one mapping of words that makes the files of now of those before, if there is one."""
    found = dict[str, str]()
    for each in changes:
        is_told = each.is_whole and each.modes[0] == each.modes[1] and bool(each.before) and bool(each.after)
        old, new = _PARTS.findall(each.before), _PARTS.findall(each.after)
        if not is_told or len(old) != len(new) or not (each.path.endswith(".py") or is_document(each)):
            return {}
        for was, now in zip(old, new, strict=True):
            if was != now and found.setdefault(was, now) != now:
                return {}
    return found if len(set(found.values())) == len(found) else {}


def _may_change(old: str, new: str) -> bool:
    """Tell whether nobody but the repository itself can know a function by either name."""
    is_of_tests = old.startswith("test_") and new.startswith("test_")
    return all(
        _NAME.fullmatch(name)
        and (is_of_tests or not _PREFIXES.match(name))
        and not keyword.iskeyword(name)
        and not keyword.issoftkeyword(name)
        and not hasattr(builtins, name)
        and name not in _CALLED_FROM_OUTSIDE
        for name in (old, new)
    )


def _says(text: str, names: Iterable[str]) -> bool:
    words = "|".join(map(re.escape, names))
    return re.search(rf"(?<!\w)(?:{words})(?!\w)", text) is not None


def _are_plain(names: Mapping[str, str], texts: Mapping[str, str]) -> bool:
    """Tell whether each place where a name stands is known, and no code finds things by name."""
    code = {path: text for path, text in texts.items() if path.endswith((".py", ".pyi"))}
    try:
        trees = {path: ast.parse(text) for path, text in code.items()}
    except (SyntaxError, ValueError, RecursionError):
        return False
    if any(reaches_by_name(tree) or not _names(tree).isdisjoint(names.values()) for tree in trees.values()):
        return False
    return all(is_plain(name, code, trees) for name in names)


def _names(tree: ast.Module) -> frozenset[str]:
    """Return the names in code as Python reads them, which may be other letters than those of the text."""
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
