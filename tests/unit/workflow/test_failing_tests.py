"""Which files failing tests point at."""

import pytest

from agentflow.workflow.refinement import find_likely_files, find_used_files

PRODUCT = {
    "shop/money.py": "CENTS = 100\n\n\ndef rounded(amount):\n    return amount // 1\n",
    "shop/order.py": "class Order:\n    def total(self):\n        return rounded(1)\n",
    "shop/cli.py": "def main():\n    print(Order().total())\n",
    "shop/other.py": "def unused():\n    pass\n\n\ndef same():\n    pass\n",
    "shop/twice.py": "def same():\n    pass\n",
}


@pytest.mark.parametrize(
    ("test", "reached"),
    [
        ("assert rounded(2) == 2", {"shop/money.py"}),
        ("assert Order()", {"shop/order.py", "shop/money.py"}),
        ("main()", {"shop/cli.py", "shop/order.py", "shop/money.py"}),
        ("same()", set[str]()),  # two files define it
        ("assert 1", set[str]()),
    ],
)
def test_a_test_uses_the_code_that_its_names_lead_to(test: str, reached: set[str]) -> None:
    assert find_used_files(PRODUCT, [test]) == (frozenset(reached),)


def test_the_test_of_the_least_code_says_the_most() -> None:
    tests = ["main()", "assert Order()", "assert rounded(2) == 2"]
    named = [frozenset({f"shop/{name}.py"}) for name in ("cli", "order", "money")]
    assert find_likely_files(find_used_files(PRODUCT, tests), named) == ("shop/money.py",)


def test_a_file_that_a_test_names_counts_more_than_one_behind_it() -> None:
    (used,) = find_used_files(PRODUCT, ["main()"])
    assert find_likely_files([used], [frozenset({"shop/cli.py"})]) == ("shop/cli.py",)
    both = frozenset({"shop/cli.py", "shop/order.py"})
    assert set(find_likely_files([used], [both])) == both
    assert find_likely_files([frozenset()], [frozenset()]) == ()


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.go", "func (b *Bucket) Take(n int) bool {\n"),
        ("a.go", "type Take struct {\n"),
        ("a.js", "export async function Take(n) {\n"),
        ("a.ts", "export default class Take {\n"),
        ("a.rs", "pub(crate) fn Take(n: u8) {\n"),
        ("a.js", "export const Take = () => 1;\n"),
    ],
)
def test_definitions_are_known_in_several_languages(path: str, text: str) -> None:
    assert find_used_files({path: text, "b": "x"}, ["Take(1)"]) == (frozenset({path}),)
