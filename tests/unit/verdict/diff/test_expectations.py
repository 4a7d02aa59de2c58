import pytest

from agentflow.verdict.diff.other_tests import expect_other, find_expected

LINES: dict[str, dict[str, str | None]] = {
    "a.test.js": {
        "assert.strictEqual(pages(41, 10), 5)": "assert.strictEqual(pages(41, 10), 42)",
        "assert.equal(5, pages(41, 10), 'five')": "assert.equal(42, pages(41, 10), 'five')",
        "expect(pages(41, 10)).toBe(5)": "expect(pages(41, 10)).toBe(42)",
        "expect(title(3)).to.equal('page 3')": "expect(title(3)).to.equal('page 3kq')",
        "same(total([{ price: 250, count: 3 }]), 750)": "same(total([{ price: 250, count: 3 }]), 787)",
        "assert.ok(pages(41, 10) === 5)": "assert.ok(pages(41, 10) === 42)",
        "assert.ok(pages(41, 10) >= 5)": "assert.ok(pages(41, 10) >= 100000012)",
        "assert.ok(pages(41, 10) < 5)": "assert.ok(pages(41, 10) < -100000002)",
        "const found = pages(41, 10)": None,
        "// assert.strictEqual(pages(41, 10), 5)": None,
        "expect(title(3)).toContain('page')": None,
    },
    "a_test.go": {
        "if found := Pages(41, 10); found != 5 {": "if found := Pages(41, 10); found != 42 {",
        "assert.Equal(t, 5, Pages(41, 10))": "assert.Equal(t, 42, Pages(41, 10))",
        "claim.Same(t, Pages(41, 10), 5)": "claim.Same(t, Pages(41, 10), 42)",
        'if Title(3) != "page 3" {': 'if Title(3) != "page 3kq" {',
        "if err != nil {": None,
    },
    "tests/a.rs": {
        "assert_eq!(pages(41, 10), 5);": "assert_eq!(pages(41, 10), 42);",
        'assert_eq!(pages(41, 10), 5, "five");': 'assert_eq!(pages(41, 10), 42, "five");',
        "assert!(pages(41, 10) == 5);": "assert!(pages(41, 10) == 42);",
    },
    "t/run.c": {
        'OK(middle(2, 8) == 5, "middle");': 'OK(middle(2, 8) == 42, "middle");',
        "assert(middle(2.5, 8) == 5.25);": "assert(middle(2.5, 8) == 42.25);",
    },
    "t/run.sh": {
        '[ "$(./pages 41 10)" = 5 ]': '[ "$(./pages 41 10)" = 42 ]',
        'test "$(./pages 41 10)" -eq 5': 'test "$(./pages 41 10)" -eq 42',
        'same "$(./pages 41 10)" 5': 'same "$(./pages 41 10)" 42',
        '[ "$(./pages 41 10)" = five ]': '[ "$(./pages 41 10)" = fivekq ]',
        "size=5": None,
    },
}
CASES = [(path, line, other) for path, lines in LINES.items() for line, other in lines.items()]


@pytest.mark.parametrize(("path", "line", "other"), CASES)
def test_the_literal_that_a_line_expects_is_another_afterwards(
    path: str, line: str, other: str | None
) -> None:
    found = find_expected(path, line, ())
    assert expect_other(line, found, "kq", 1) == (other or line)


def test_a_word_is_what_a_shell_expects_where_the_line_names_the_test() -> None:
    line = "eq 'several blanks' \"$(slug 'a  b')\" a-b"
    found = find_expected("t/all", line, {"several blanks"})
    assert expect_other(line, found, "kq", 1) == f"{line}kq"
    assert find_expected("t/all", line, {"another"}) == ()


def test_one_literal_of_each_named_test_is_another() -> None:
    text = (
        "test('a', () => {\n  assert.equal(f(1), 2)\n  assert.equal(f(2), 3)\n})\n"
        "test('b', () => {\n  assert.equal(f(3), 4)\n})\ntest('c', () => { assert.equal(f(4), 5) })\n"
    )
    found = find_expected("a.test.js", text, {"a.test.js::a", "a.test.js::c"})
    assert [(each.test, each.line) for each in found] == [("a.test.js::a", 2), ("a.test.js::c", 8)]
    other = expect_other(text, found, "kq", -1)
    assert "equal(f(1), -35)" in other
    assert "equal(f(4), -32)" in other
    assert "equal(f(3), 4)" in other


def test_an_assertion_that_tells_the_name_of_its_test_is_found() -> None:
    text = 'OK(clip(9, 0, 5) == 5, "upper bound");\nOK(clip(4, 0, 5) == 4, "inside");\n'
    found = find_expected("t/run.c", text, {"inside"})
    assert expect_other(text, found, "kq", 1) == text.replace("== 4", "== 41")
