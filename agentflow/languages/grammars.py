"""The door to the grammars: which there are, and a file's tree with the places that its query names."""

from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from agentflow.core.record import Record

if TYPE_CHECKING:
    from tree_sitter import Language, Query
    from tree_sitter import Node as Node

_QUERIES = Path(__file__).with_name("queries")
SYMBOL_QUERY = ".symbols"
"""The queries for definitions, uses and imports; those without an ending are for what mutants change."""


class Grammar(Record):
    """A language: the files it is written in, its grammar, and how it writes what operators need."""

    name: str
    suffixes: tuple[str, ...]
    package: str
    """The module of the grammar."""
    function: str = "language"
    """Its function that returns the grammar."""
    queries: tuple[str, ...] = ()
    """The query files, if there is not just one named like the language."""
    true: str = "true"
    false: str = "false"
    negation: str = "!({})"
    nothing: str = ";"
    """A statement that does nothing."""
    leave: str = "break;"
    """A statement that ends a loop."""
    empty_body: str = "{}"
    """The body of a function that does nothing."""
    failed_body: str = "{}"
    """That of one that has to return something: a default, or a failure."""
    defaults: tuple[str, ...] = ()
    """What a function may return in place of its result; `{type}` is the result's type."""
    early_return: str = ""
    """A statement by which any function ends with a default, `{results}` its defaults by type."""
    other_return: str = ""
    """A statement by which it ends with another result, which a test that expects the default notices."""
    other_results: tuple[tuple[str, str], ...] = ()
    """Another result than the default of a type."""
    unwrapped: str = "{}"
    """What stands for a value whose `await`, slice or error check is left out."""
    rethrow: str = ""
    """The body of a handler that passes its error on."""
    other_error: str = ""
    """An error of another class, where a language's tests tell errors by their class."""
    narrow_errors: tuple[str, ...] = ()
    """Classes of errors, none of which is one of the others."""
    own_copy: str = ""
    """A statement by which a function goes on with a copy of an argument that it changes."""
    tests_in_brackets: bool = False
    """Comparisons stand in brackets of their own, where `false` is a text like any other."""
    is_loose: bool = True
    """A call may have fewer arguments, and a value another type, without a word of a compiler."""


GRAMMARS = (
    Grammar(
        name="Python",
        suffixes=(".py", ".pyi"),
        package="tree_sitter_python",
        true="True",
        false="False",
        negation="not ({})",
        nothing="pass",
        leave="break",
        empty_body="pass",
        failed_body="return None",
        defaults=("None",),
        early_return="return",
        other_return="return True",
        rethrow="raise",
        other_error="ArithmeticError()",
        narrow_errors=("ValueError", "TypeError", "LookupError", "OSError"),
        own_copy='{0} = __import__("copy").copy({0})\n',
    ),
    Grammar(
        name="JavaScript",
        suffixes=(".js", ".mjs", ".cjs", ".jsx"),
        package="tree_sitter_javascript",
        defaults=("undefined",),
        early_return="return",
        other_return="return true",
        rethrow="{ throw new Error(); }",
        own_copy="{0} = [...{0}]; ",
    ),
    Grammar(
        name="TypeScript",
        suffixes=(".ts", ".mts", ".cts"),
        package="tree_sitter_typescript",
        function="language_typescript",
        queries=("javascript", "typescript"),
        defaults=("undefined",),
        early_return="return undefined!",
        other_return="return true as never",
        rethrow="{ throw new Error(); }",
        own_copy="{0} = [...{0}]; ",
    ),
    Grammar(
        name="TSX",
        suffixes=(".tsx",),
        package="tree_sitter_typescript",
        function="language_tsx",
        queries=("javascript", "typescript"),
        defaults=("undefined",),
        early_return="return undefined!",
        other_return="return true as never",
        rethrow="{ throw new Error(); }",
        own_copy="{0} = [...{0}]; ",
    ),
    Grammar(
        name="Go",
        suffixes=(".go",),
        package="tree_sitter_go",
        own_copy="{0} = append({0}[:0:0], {0}...); ",
        nothing="",
        failed_body='{ panic("") }',
        defaults=("*new({type})",),
        early_return="return {results}",
        other_return="return {results}",
        other_results=(
            *(("bool", "true"), ("string", '"other"')),
            *((name, "1") for name in ("int", "int32", "int64", "uint", "uint64", "byte", "float64")),
        ),
        is_loose=False,
    ),
    Grammar(
        name="Rust",
        suffixes=(".rs",),
        package="tree_sitter_rust",
        failed_body="{ panic!() }",
        defaults=("Default::default()",),
        early_return="return unsafe {{ std::mem::zeroed() }}",
        unwrapped="{}.unwrap()",
        is_loose=False,
    ),
    Grammar(
        name="C",
        suffixes=(".c", ".h"),
        package="tree_sitter_c",
        true="1",
        false="0",
        failed_body="{ return 0; }",
        defaults=("0",),
        is_loose=False,
    ),
    Grammar(
        name="C++",
        suffixes=(".cpp", ".cc", ".cxx", ".hpp", ".hh", ".hxx"),
        package="tree_sitter_cpp",
        queries=("c", "cpp"),
        failed_body="{ return {}; }",
        defaults=("{}",),
        rethrow="{ throw; }",
        is_loose=False,
    ),
    Grammar(
        name="Java",
        suffixes=(".java",),
        package="tree_sitter_java",
        own_copy="{0} = new java.util.ArrayList<>({0}); ",
        failed_body="{ throw new RuntimeException(); }",
        defaults=("null", "0"),
        early_return="if (true) throw new RuntimeException()",
        rethrow="{ throw new RuntimeException(); }",
        is_loose=False,
    ),
    Grammar(
        name="Ruby",
        suffixes=(".rb",),
        package="tree_sitter_ruby",
        nothing="nil",
        leave="break",
        empty_body="nil",
        failed_body="nil",
        defaults=("nil",),
        early_return="return nil",
        other_return="return true",
        rethrow="; raise",
        other_error="ArithmeticError",
    ),
    Grammar(
        name="shell",
        suffixes=(".sh", ".bash"),
        package="tree_sitter_bash",
        tests_in_brackets=True,
        negation="! {}",
        nothing=":",
        empty_body="{ :; }",
        early_return="return 0",
        other_return="return 1",
        leave="break",
    ),
)


def find_grammar(path: str) -> Grammar | None:
    """Return the language of a file by its name, or None for one that no grammar reads."""
    suffix = PurePosixPath(path).suffix
    return next((each for each in GRAMMARS if suffix in each.suffixes), None)


class SyntaxTree(Record):
    """A file's tree: its text as bytes, and for each name of its query the nodes that have it, in order."""

    grammar: Grammar
    text: bytes
    root: "Node"
    nodes: Mapping[str, tuple["Node", ...]]
    broken_lines: frozenset[int]
    """The lines, from 1, that the grammar cannot read."""

    def read(self, node: "Node") -> str:
        return self.text[node.start_byte : node.end_byte].decode("utf-8", "replace")


def parse_source(path: str, text: str, query: str = "") -> SyntaxTree | None:
    grammar = find_grammar(path)
    if grammar is None:
        return None
    from tree_sitter import Parser, QueryCursor  # noqa: PLC0415  # only where a file is judged

    source = text.encode()
    root = Parser(_load_language(grammar)).parse(source).root_node
    found = QueryCursor(_load_query(grammar, query)).captures(root)
    nodes = {name: tuple(sorted(each, key=lambda node: node.start_byte)) for name, each in found.items()}
    return SyntaxTree(
        grammar=grammar,
        text=source,
        root=root,
        nodes=defaultdict(tuple, nodes),
        broken_lines=frozenset(_list_broken(root)),
    )


def find_broken_lines(path: str, text: str) -> frozenset[int]:
    """Return the lines, from 1, that the grammar of a file cannot read; none where no grammar reads it."""
    grammar = find_grammar(path)
    if grammar is None:
        return frozenset()
    from tree_sitter import Parser  # noqa: PLC0415

    source = text.encode("utf-8", "replace")
    return frozenset(_list_broken(Parser(_load_language(grammar)).parse(source).root_node))


def _list_broken(node: "Node") -> list[int]:
    if not node.has_error:
        return []
    if node.is_error or node.is_missing:
        return [*range(node.start_point.row + 1, node.end_point.row + 2)]
    return [line for child in node.children for line in _list_broken(child)]


@cache
def _load_language(grammar: Grammar) -> "Language":
    from tree_sitter import Language  # noqa: PLC0415

    return Language(getattr(import_module(grammar.package), grammar.function)())


@cache
def _load_query(grammar: Grammar, kind: str) -> "Query":
    from tree_sitter import Query  # noqa: PLC0415

    names = grammar.queries or (grammar.name.lower(),)
    text = "".join((_QUERIES / f"{name}{kind}.scm").read_text("utf-8") for name in names)
    return Query(_load_language(grammar), text)
