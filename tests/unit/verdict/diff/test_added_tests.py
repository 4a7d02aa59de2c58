"""A file that gained nothing but whole tests; whatever else it gained may weaken those it had."""

import pytest

from agentflow.verdict.diff.other_tests import find_added_tests

NODE = """const { test } = require('node:test');
const assert = require('node:assert');
const { total } = require('../lib/cart.js');

test('adds', () => {
  assert.strictEqual(total([1, 2]), 3);
});

test('adds nothing', () => assert.strictEqual(total([]), 0));
"""
SUITE = """import { total } from '../lib/cart.js';

describe('total', () => {
  it('adds', () => {
    expect(total([1, 2])).toBe(3);
  });
});
"""
GO = """package pager

import (
\t"testing"
)

func TestFull(t *testing.T) {
\tif found := Pages(40, 10); found != 4 {
\t\tt.Errorf("found %d", found)
\t}
}
"""
RUST = "use bill::tip;\n\n#[test]\nfn tips() {\n    assert_eq!(tip(100), 10);\n}\n"
NEW = "test('adds one', () => {\n  assert.strictEqual(total([5]), 5);\n});\n"
NEW_GO = 'func TestPart(t *testing.T) {\n\tif Pages(1, 10) != 1 {\n\t\tt.Error("no")\n\t}\n}\n'


def gained(path: str, before: str, *pairs: tuple[str, str]) -> frozenset[str]:
    after = before
    for old, new in pairs:
        assert old in after
        after = after.replace(old, new, 1)
    return find_added_tests(path, before, after)


def test_whole_tests_are_new() -> None:
    assert gained("a.test.js", NODE, ("test('adds'", f"{NEW}\ntest('adds'")) == {"adds one"}
    assert find_added_tests("a.test.js", NODE, f"{NODE}\n{NEW}") == {"adds one"}
    within = ("  });\n});", "  });\n  it('adds one', () => {\n    expect(total([5])).toBe(5);\n  });\n});")
    assert gained("a.test.ts", SUITE, within) == {"adds one"}
    assert gained("a_test.go", GO, ("func TestFull", f"{NEW_GO}\nfunc TestFull")) == {"TestPart"}
    new = "\n#[test]\nfn tips_more() {\n    assert_eq!(tip(200), 20);\n}\n"
    assert find_added_tests("tests/tip.rs", RUST, RUST + new) == {"tips_more"}
    assert find_added_tests("b.test.js", "", NODE) == {"adds", "adds nothing"}


def test_further_imports_are_no_difference() -> None:
    more = ("{ total }", "{ total, rate }")
    assert gained("a.test.js", NODE, more, ("test('adds'", f"{NEW}\ntest('adds'")) == {"adds one"}
    strings = ('\t"testing"\n', '\t"strings"\n\t"testing"\n')
    assert gained("a_test.go", GO, strings, ("func TestFull", f"{NEW_GO}\nfunc TestFull")) == {"TestPart"}
    other = ("require('../lib/cart.js')", "require('../lib/other.js')")
    assert not gained("a.test.js", NODE, other, ("test('adds'", f"{NEW}\ntest('adds'"))


@pytest.mark.parametrize(
    "added",
    [
        "assert.strictEqual = () => {};\n",
        "process.exit(0);\n",
        "test.only('adds one', () => {});\n",
        "test('adds one', () => {}), process.exit(0);\n",
        "test('adds one', () => {\n  total([]);\n}); process.exit(0);\n",
        "test('adds one', () => {\n  total([]);\n});\nassert.strictEqual = () => {};\n",
        "/* so\n",
    ],
)
def test_what_is_no_test_may_weaken_others(added: str) -> None:
    assert not gained("a.test.js", NODE, ("test('adds'", f"{added}test('adds'"))


def test_a_test_that_was_there_stays_as_it_was() -> None:
    assert not gained("a.test.js", NODE, ("  assert", "  return;\n  assert"))
    assert not gained("a.test.js", NODE, ("3);", "4);"), ("test('adds'", f"{NEW}\ntest('adds'"))
    assert not gained(
        "a.test.js", NODE, ("test('adds'", f"{NEW}\ntest('adds'"), ("\ntest('adds nothing'", "//")
    )
    assert not gained("a_test.go", GO, ("\tif", "\tt.Skip()\n\tif"))
    assert not gained("a_test.go", GO, ("func TestFull", "func init() {\n}\n\nfunc TestFull"))
    assert not gained("tests/tip.rs", RUST, ("#[test]", "#[test]\n#[ignore]"))
