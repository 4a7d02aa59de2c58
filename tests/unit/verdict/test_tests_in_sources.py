import pytest

from agentflow.verdict.mixed_files import extract_checks, mix

RUST = """pub fn total(cart: &[u32]) -> u32 { %s }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums() { assert_eq!(total(&[1, 2]), %s); let _ = "}"; }
}
"""
PYTHON = '''def total(cart):
    """Sum a cart.

    >>> total([1, 2])
    %s
    """
    return %s
'''


def test_the_test_module_of_before_is_laid_into_the_code_of_now() -> None:
    before, now = RUST % ("cart.iter().sum()", "3"), RUST % ("4", "4")

    assert mix("src/lib.rs", before, now) == RUST % ("4", "3")


def test_code_behind_the_module_is_kept() -> None:
    before, now = RUST % ("1", "3"), RUST % ("4", "4") + "pub fn more() -> u32 { 1 }\n"

    assert mix("src/lib.rs", before, now) == RUST % ("4", "3") + "pub fn more() -> u32 { 1 }\n"


def test_a_test_module_that_is_gone_comes_back() -> None:
    before = RUST % ("1", "3")
    now = "pub fn total(cart: &[u32]) -> u32 { 4 }\n"

    mixed = mix("src/lib.rs", before, now)

    assert mixed.startswith(now)
    assert extract_checks("src/lib.rs", mixed) == extract_checks("src/lib.rs", before)


def test_a_new_test_module_is_no_part_of_before() -> None:
    code = "pub fn total(cart: &[u32]) -> u32 { 4 }\n"

    mixed = mix("src/lib.rs", code, RUST % ("4", "4"))

    assert extract_checks("src/lib.rs", mixed) == ""


def test_examples_of_rust_documentation_are_laid_too() -> None:
    text = "/// Sums.\n/// ```\n/// assert_eq!(demo::total(), %s);\n/// ```\npub fn total() -> u32 { %s }\n"

    assert mix("src/lib.rs", text % (3, 3), text % (4, 4)) == text % (3, 4)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            "src/train.rs",
            "/// Sums.\n///\n/// ```rust\n/// assert!(demo::total());\n/// ```\npub fn total() {}\n",
        ),
        ("src/lib.rs", "//! Sums.\n//! ```\n//! assert!(demo::total());\n//! ```\npub fn total() {}\n"),
        ("calc.py", PYTHON % ("3", "sum(cart)")),
    ],
)
def test_new_documentation_stays_without_its_examples(path: str, text: str) -> None:
    """A crate that denies missing documentation did not compile without it."""
    mixed = mix(path, "", text)

    assert "Sums." in mixed or "Sum a cart." in mixed
    assert len(mixed.splitlines()) == len(text.splitlines())
    assert ">>> " not in mixed
    assert mixed.replace("```text", "").count("```") == text.count("```") // 2


def test_the_doctest_of_before_is_laid_into_the_code_of_now() -> None:
    before, now = PYTHON % ("3", "sum(cart)"), PYTHON % ("4", "4")

    assert mix("calc.py", before, now) == PYTHON % ("3", "4")


@pytest.mark.parametrize("quote", ["'''", '"""'])
def test_prose_of_docstrings_without_examples_is_as_now(quote: str) -> None:
    before = f"def f():\n    {quote}Old.{quote}\n"
    now = f"def f():\n    {quote}Néw.{quote}\n    return 'é'\n"

    assert mix("calc.py", before, now) == now


def test_a_file_that_is_no_python_stays_as_it_is() -> None:
    assert mix("calc.py", PYTHON % ("3", "3"), "def (") == "def ("


_SAID = '"""\n    >>> one()\n    1\n    """'


@pytest.mark.parametrize(
    ("place", "is_line"),
    [
        ("def one():\n    # why\n    {}return 1\n", True),
        ("def one():\n    {}for each in (1,):\n        return each\n", True),
        ("def one(): {}return 1\n", False),
        ("class One:\n    {}@property\n    def one(self):\n        return 1\n", True),
        ("{}def test_one():\n    assert one() == 1\n", True),
        ("import os\n\n\nclass One:\n    def one(self):\n        {}return 'é'\n", True),
    ],
)
def test_an_example_that_was_taken_out_goes_back_to_its_place(place: str, is_line: bool) -> None:
    indent = place[: place.index("{")].rpartition("\n")[2]
    before = place.format(f"{_SAID}\n{indent}" if is_line else f"{_SAID}; ")
    assert mix("calc.py", before, place.format("")) == before


def test_a_form_feed_ends_no_line() -> None:
    text = "\x0c\nclass One:\n    @property\n    def one(self):\n        return 1\n"
    before = text.replace("    @prop", f"    {_SAID}\n    @prop")
    assert mix("calc.py", before, text) == before


def test_an_example_whose_function_is_gone_fails() -> None:
    mixed = mix("calc.py", f"def one():\n    {_SAID}\n    return 1\n", "x = 1\n")
    assert mixed.startswith("x = 1\n")
    assert f"{_SAID}\n    raise NotImplementedError" in mixed
