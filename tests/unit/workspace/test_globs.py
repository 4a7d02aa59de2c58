import pytest

from agentflow.core.regex import compile_glob


@pytest.mark.parametrize(
    ("glob", "named", "others"),
    [
        ("*.py", ("a.py", "src/deep/a.py"), ("a.pyc", "apy")),
        ("**/*.py", ("a.py", "src/a.py", "src/deep/a.py"), ("a.md",)),
        ("src/*.py", ("src/a.py",), ("src/deep/a.py", "a.py", "x/src/a.py")),
        ("./src/*.py", ("src/a.py",), ("src/deep/a.py",)),
        ("/a.py", ("a.py",), ("src/a.py",)),
        ("src/**", ("src/a.py", "src/deep/a.py"), ("src", "srca/a.py")),
        ("src/**/a.py", ("src/a.py", "src/x/y/a.py"), ("src/xa.py",)),
        ("*.{ts,tsx}", ("a.ts", "x/a.tsx"), ("a.t", "a.ts,tsx")),
        ("{src,lib}/**/*.{py,pyi}", ("src/a.py", "lib/x/a.pyi"), ("doc/a.py",)),
        ("a,b", ("a,b",), ("a", "b")),
        ("a{b", ("a{b",), ("ab",)),
        ("file?.txt", ("file1.txt",), ("file10.txt", "file/.txt")),
        ("[ab].py", ("a.py",), ("c.py",)),
        ("[!ab].py", ("c.py",), ("a.py", "/.py")),
        ("[.py", ("[.py",), ("a.py",)),
        ("[]].py", ("].py",), ("a.py",)),
        (r"\*.py", ("*.py",), ("a.py",)),
        ("a+(b).py", ("a+(b).py",), ("aab.py",)),
        ("**", ("a.py", "src/deep/a.py"), ()),
        ("*", ("a.py", "src/line\nend"), ()),
        ("[a", ("[a",), ("a",)),
    ],
)
def test_names_these_paths_and_no_others(glob: str, named: tuple[str, ...], others: tuple[str, ...]) -> None:
    found = compile_glob(glob)
    assert [path for path in named if not found.fullmatch(path)] == []
    assert [path for path in others if found.fullmatch(path)] == []


@pytest.mark.parametrize(
    "glob", ["}{", "{{a}", "[z-a]", "[[:alpha:]]", "\\", "{a,{b,c}}", "[\\]", "[^]", "***"]
)
def test_an_odd_glob_is_taken_or_names_nothing(glob: str) -> None:
    compile_glob(glob).fullmatch("a")
