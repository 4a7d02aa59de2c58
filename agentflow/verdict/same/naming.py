"""Renamings and moves: whether a change only gives names others, in every language that a grammar reads.

That no use of a name was missed, tests show: the mutants of all changed lines have to be killed.
"""

import builtins
import keyword
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from agentflow.core.languages import is_document_path, is_source
from agentflow.core.regex import regex
from agentflow.languages.grammars import SyntaxTree, parse_source
from agentflow.verdict.surface import is_document
from agentflow.verdict.syntax import may_reach_by_name, read_python
from agentflow.workspace.mixed_tree import ChangedTexts

if TYPE_CHECKING:
    from agentflow.languages.grammars import Node

_Texts = Mapping[str, str]
"""Texts by path."""
_Span = tuple[int, int]
_NAME = re.compile(r"_?[A-Za-z][A-Za-z0-9_]{2,}")
_CALLED_FROM_OUTSIDE = frozenset(
    {
        *("main", "setup", "app", "application", "handler", "lambda_handler", "create_app"),
        *("make_app", "ready", "upgrade", "downgrade", "load_tests", "build_wheel", "build_sdist"),
        *("build_editable", "prepare", "run", "on_starting", "when_ready", "post_fork", "pre_fork"),
        *("load_ipython_extension", "get_version"),
    }
)
_PREFIXES = re.compile(
    r"(?:pytest_|test|Test|task_|setup|teardown|setUp|tearDown|get_requires_for|visit_|depart_|__)"
)
_BY_NAME = regex(
    r"\b(?:eval|exec|Function|Reflect|Proxy|rewire|proxyquire|angular|getOwnProperty\w*|type_name|FuncForPC"
    r"|\w+ByName|instance_variable_\w+|public_send|define_method|method_missing|const_get|getDeclared\w+"
    r"|getMethods?|forName)\b|\$inject|\brequire\((?!\s*(['\"`])[^'\"`$]*\1\s*\))"
)
"""Words of other languages than Python whose use may read the spelling of names."""
_DECLARES = re.compile(
    r"param|variable_declarator|init_declarator|short_var|let_decl|for_in|enhanced_for|range_clause|var_spec|^declaration$"
)
"""Kinds of nodes that name what their function alone knows."""
_TELLS_HOME = regex(r"__(?:module|qualname|file|globals|code|dirname|filename)__|__(?:dir|file)name\b")
_MANIFESTS = ("pyproject.toml", "setup.cfg", "setup.py")
_LISTS_PACKAGES = regex(r"\b(?:packages|py_modules|py-modules)\b")
_FOUND_BY_NAME = re.compile(r"_|test|conftest|setup|main|app|wsgi|asgi|manage|settings|index|mod\b|lib\b")


def find_renaming(changes: Iterable[ChangedTexts]) -> dict[str, str]:
    """Return the mapping of names that turns the old files into the new ones, if there is one.

    Words that only texts say are no names: a docstring with another title may be read by a program.
    """
    found, named = dict[str, str](), set[str]()
    for each in changes:
        is_told = each.is_whole and each.modes[0] == each.modes[1] and bool(each.before) and bool(each.after)
        pairs = _pair_words(each) if is_told else None
        if pairs is None:
            return {}
        for was, now, is_name in pairs:
            if was != now and found.setdefault(was, now) != now:
                return {}
            named.update([was] if is_name else [])
    return found if len(set(found.values())) == len(found) and found.keys() <= named else {}


def _pair_words(change: ChangedTexts) -> list[tuple[str, str, bool]] | None:
    """Return the words of both sides, and which are names of code; None where anything else differs."""
    if is_document(change):
        return _pair_parts(change.before, change.after)
    old, new = (parse_source(change.path, text) for text in (change.before, change.after))
    if old is None or new is None or old.root.has_error or new.root.has_error:
        return None
    spoken = [_span(each) for name in ("naming", "docstring") for each in old.nodes[name]]
    sides = list(_list_leaves(old.root)), list(_list_leaves(new.root))
    pairs = list[tuple[str, str, bool]]()
    for was, now in zip(*sides, strict=True) if len(sides[0]) == len(sides[1]) else ():
        texts = old.read(was), new.read(now)
        is_text = "comment" in was.type or any(_is_within(was, span) for span in spoken)
        if was.type != now.type or (texts[0] != texts[1] and not (is_text or _is_name(was))):
            return None
        parts = _pair_parts(*texts) if is_text else [(*texts, True)] if _is_name(was) else []
        if parts is None:
            return None
        pairs += parts
    return pairs or None


def _pair_parts(before: str, after: str) -> list[tuple[str, str, bool]] | None:
    old, new = (re.findall(r"\w+|\W", text) for text in (before, after))
    is_alike = len(old) == len(new)
    return [(was, now, False) for was, now in zip(old, new, strict=True)] if is_alike else None


def _list_leaves(node: "Node") -> Iterator["Node"]:
    """Yield the nodes without parts, comments among them, in order."""
    rest = [node]
    while rest:
        each = rest.pop()
        if each.children and "comment" not in each.type:
            rest += reversed(each.children)
        else:
            yield each


def _span(node: "Node") -> _Span:
    return node.start_byte, node.end_byte


def _is_within(node: "Node", span: _Span) -> bool:
    return span[0] <= node.start_byte and node.end_byte <= span[1]


def _is_name(node: "Node") -> bool:
    is_of_shell = node.parent is not None and node.parent.type in ("function_definition", "command_name")
    return re.search("identifier|constant|variable_name", node.type) is not None or is_of_shell


def is_renamed(before: _Texts, after: _Texts, names: Mapping[str, str]) -> bool:
    """Return whether each of these names is known to the repository alone, and no text says it any more.

    The texts are those of all files by path.
    """
    words = {word for path in before for word in re.findall(r"\w+", path)}
    return (
        before.keys() == after.keys()
        and all(map(_may_change, names, names.values()))
        and words.isdisjoint({*names, *names.values()})
        and not any(_says(text, names.values()) for text in before.values())
        and not any(_says(text, names) for text in after.values())
        and not any(_reaches_by_name(path, text) for path, text in before.items())
        and _list_known_outside(before, names).isdisjoint(names)
    )


def _may_change(old: str, new: str) -> bool:
    """Return whether only the repository itself can use either name."""
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


def _reaches_by_name(path: str, text: str) -> bool:
    """Return whether code may look things up by a name that is put together."""
    if path.endswith((".py", ".pyi")):
        tree = read_python(text)
        return tree is None or may_reach_by_name(tree)
    return is_source(path) and _BY_NAME.search(text) is not None


def is_equal_but_locals(change: ChangedTexts) -> bool:
    """Return whether nothing differs but names that one function alone knows, in it and nowhere else."""
    old, new = (parse_source(change.path, text) for text in (change.before, change.after))
    is_read = old and new and not (old.root.has_error or new.root.has_error or _BY_NAME.search(change.after))
    if not is_read or old is None or new is None:
        return False
    leaves = list(_list_leaves(old.root)), list(_list_leaves(new.root))
    if len(leaves[0]) != len(leaves[1]):
        return False
    bodies = {_span(each.parent) for each in old.nodes["body"] if each.parent is not None}
    names, declared = defaultdict[_Span, dict[str, str]](dict), defaultdict[_Span, set[str]](set)
    words = list[tuple[_Span, str, str]]()
    for was, now in zip(*leaves, strict=True):
        above, texts = list(_list_above(was)), (old.read(was), new.read(now))
        function = next((span for each in reversed(above) if (span := _span(each)) in bodies), (0, 0))
        is_name = function != (0, 0) and was.type == now.type == "identifier"
        if texts[0] != texts[1] and not (is_name and names[function].setdefault(*texts) == texts[1]):
            return False
        if is_name and _is_declared(was, above[:2]):
            declared[function].add(texts[0])
        if not re.search("(property|field|type)_identifier", was.type):
            words.append((function, *texts))
    is_told = all(names[at].keys() <= declared[at] for at in names)
    mine = [(names[at], was, now) for at, was, now in words if at in names]
    is_whole = all(told.get(was, was) == now and was not in told.values() for told, was, now in mine)
    return bool(names) and is_told and is_whole


def _is_declared(name: "Node", above: Iterable["Node"]) -> bool:
    """Return whether the nodes above a name declare it; what they give as its value may be any other name."""
    around = [*above]
    fields = ("value", "right", "default_value", "body")
    values = [value for each in around for field in fields if (value := each.child_by_field_name(field))]
    return any(_DECLARES.search(each.type) for each in around) and not any(
        _is_within(name, _span(each)) for each in values
    )


def _list_above(node: "Node") -> Iterator["Node"]:
    while node.parent is not None:
        node = node.parent
        yield node


def _list_known_outside(texts: _Texts, names: Iterable[str]) -> set[str]:
    """Return the names that code from elsewhere may know: keys, and what it decorates or is a base of."""
    said = re.compile("|".join(map(re.escape, names)))
    telling = {path: text for path, text in texts.items() if said.search(text) or "**" in text}
    trees = [tree for path, text in telling.items() if (tree := parse_source(path, text))]
    own = {tree.read(each) for tree in trees for each in tree.nodes["class"]}
    found = set[str]()
    for tree in trees:
        apart = [_span(each) for name in ("listed", "imported") for each in tree.nodes[name]]
        keys = (each for each in tree.nodes["key"] if not any(_is_within(each, span) for span in apart))
        found.update(map(tree.read, keys))
        for node in tree.nodes["inherits"]:
            above = node.parent
            if above is not None and above.type == "modifiers":  # Java's annotations
                above = above.parent
            if above is not None and not _is_own(tree.read(node), own):
                found.update(re.findall(r"\w+", _read_head(tree, above)))
    return found | _list_spread(trees)


def _list_spread(trees: list[SyntaxTree]) -> set[str]:
    """Return the parameters of functions and classes that are called with a table of names and values."""
    takers = {tree.read(each).rpartition(".")[2] for tree in trees for each in tree.nodes["spreads"]}
    return {
        word
        for tree in trees
        for each in tree.nodes["taker"]
        if tree.read(each) in takers and each.parent is not None
        for word in re.findall(r"\w+", _read_head(tree, each.parent))
    }


def _is_own(bases: str, own: set[str]) -> bool:
    return all(
        each in own or isinstance(getattr(builtins, each, None), type) or each in ("extends", "implements")
        for each in re.findall(r"\w+", bases)
    )


def _read_head(tree: SyntaxTree, node: "Node") -> str:
    """Return a class as a whole, and a function without its body."""
    inner = node.child_by_field_name("definition") or node
    body = inner.child_by_field_name("body") if "function" in inner.type else None
    return tree.text[node.start_byte : body.start_byte if body else node.end_byte].decode("utf-8", "replace")


def find_moved_module(before: _Texts, after: _Texts) -> dict[str, str]:
    """Return the old and the new name of the one module whose file has another name or folder; else nothing.

    The file keeps its text, and everything that imports it does so by the new name.
    """
    gone, new = sorted(before.keys() - after.keys()), sorted(after.keys() - before.keys())
    new = [path for path in new if not is_empty_package(path, after)]
    if len(gone) != 1 or len(new) != 1 or before[gone[0]] != after[new[0]]:
        return {}
    old, now = PurePosixPath(gone[0]), PurePosixPath(new[0])
    if old.suffix != now.suffix or not is_source(gone[0]) or any(map(_is_looked_for, (old.stem, now.stem))):
        return {}
    if old.parent != now.parent and not _may_change_folder(old, now, before, after):
        return {}
    is_same = _is_equal_but_imports(old, now, before, after)
    return (
        {old.stem: now.stem} if is_same and not _is_named(old, after) and not _is_named(now, before) else {}
    )


def is_empty_package(path: str, texts: _Texts) -> bool:
    """Return whether a file only makes its folder a package."""
    return PurePosixPath(path).name == "__init__.py" and not texts.get(path, "").strip()


def _is_looked_for(stem: str) -> bool:
    """Return whether a program may look for a file of this name by itself."""
    return not stem.isidentifier() or _FOUND_BY_NAME.match(stem) is not None


def _may_change_folder(old: PurePosixPath, now: PurePosixPath, before: _Texts, after: _Texts) -> bool:
    """Return whether a module does the same in another folder: no code and no manifest knows where it is."""
    tree = parse_source(str(old), before[str(old)])
    loads = [tree.read(each) for each in tree.nodes["imported"]] if tree else ["."]
    is_placed = any(re.search(r"^from\s*\.|[\"']\.", each) for each in loads)
    apart = {str(each / "__init__.py") for each in {*old.parents} ^ {*now.parents}}
    is_run = any(
        path in texts and not is_empty_package(path, texts) for path in apart for texts in (before, after)
    )
    listed = any(_LISTS_PACKAGES.search(before.get(path, "")) for path in _MANIFESTS)
    tops = {_list_parts(each)[0] for each in (old, now)}
    return not (is_placed or _TELLS_HOME.search(before[str(old)]) or is_run or listed) and len(tops) == 1


def _list_parts(place: PurePosixPath) -> list[str]:
    return [part for part in place.with_suffix("").parts if part != "src"]


def _is_named(place: PurePosixPath, texts: _Texts) -> bool:
    """Return whether a text of code, or a file that is neither code nor document, says where a module is."""
    parts = _list_parts(place)
    dotted = r"[./]".join(map(re.escape, parts)) if len(parts) > 1 else re.escape(place.stem)
    named = re.compile(rf"(?<![\w.]){dotted}(?!\w)|(?<!\w){re.escape(place.name)}(?!\w)")
    for path, text in texts.items():
        if is_document_path(path) or path == str(place) or not named.search(text):
            continue
        tree = parse_source(path, text)
        if tree is None or any(map(named.search, _list_strings(tree))):
            return True
    return False


def _list_strings(tree: SyntaxTree) -> Iterator[str]:
    """Yield the strings of code, without those that imports say."""
    loads = [_span(each) for each in tree.nodes["imported"]]
    for each in tree.nodes["string"]:
        if not any(_is_within(each, load) for load in loads):
            yield tree.read(each)


def _is_equal_but_imports(old: PurePosixPath, now: PurePosixPath, before: _Texts, after: _Texts) -> bool:
    """Return whether all code is unchanged but for imports of the module by its new name."""
    places = set(re.findall(r"\w+", str(old))), set(re.findall(r"\w+", str(now)))
    for path in before.keys() & after.keys():
        texts = before[path], after[path]
        if is_document_path(path):
            continue
        if _reaches_by_name(path, before[path]):
            return False
        sides = [parse_source(path, text) for text in texts] if is_source(path) else [None]
        if any(each is None or each.root.has_error for each in sides):
            if texts[0] != texts[1]:
                return False
            continue
        was, new = (_split_imports(each) for each in sides if each)
        is_attribute = any(pair[0] in (".", "::") and pair[1] == old.stem for pair in pairwise(was[1]))
        if was[1] != new[1] or is_attribute or len(was[0]) != len(new[0]):
            return False  # code may reach the module as an attribute of its package
        for load, then in zip(was[0], new[0], strict=True):
            gone, come = {*load} - {*then}, {*then} - {*load}
            is_other = old.stem in load and load == then
            if is_other or not (gone <= places[0] | {*"./"} and come <= places[1] | {*"./"}):
                return False
    return not _reaches_by_name(str(old), before[str(old)])


def _split_imports(tree: SyntaxTree) -> tuple[list[list[str]], list[str]]:
    """Return the words and signs of each import, and the leaves of all else."""
    loads = [_span(each) for each in tree.nodes["imported"]]
    imports = [re.findall(r"\w+|[^\w\s]", tree.read(each)) for each in tree.nodes["imported"]]
    kept = (each for each in _list_leaves(tree.root) if not any(_is_within(each, it) for it in loads))
    return imports, [tree.read(each) for each in kept]
