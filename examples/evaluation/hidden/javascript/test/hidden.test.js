const test = require("node:test");
const assert = require("node:assert");
const kit = require("../kit");

test("all", () => {
  assert.deepStrictEqual([-9, -3, 0, 4, 9].map((n) => kit.clamp(n, -3, 4)), [-3, -3, 0, 4, 4]);
  assert.deepStrictEqual([1, 7, 8, 14, 15].map((n) => kit.lastPage(n, 7)), [1, 1, 2, 2, 3]);
  assert.deepStrictEqual([1600, 1700, 1904, 2001].map((n) => kit.isLeap(n)), [true, false, true, false]);
  assert.deepStrictEqual([[7], [1, 2], [9, 1, 5, 3], [10, 9, 100]].map((v) => kit.median(v)), [7, 1.5, 4, 10]);
  assert.deepStrictEqual(["", " a ", "a b", "  a  b c"].map((t) => kit.countWords(t)), [0, 1, 2, 3]);
  assert.deepStrictEqual([7, 10, 999, -41].map((n) => kit.digitSum(n)), [7, 1, 27, 5]);
  assert.deepStrictEqual(["a", "ab", "aab", "abb", "abbaaa"].map((t) => kit.runLength(t)), [1, 1, 2, 2, 3]);
  assert.deepStrictEqual([kit.overlap(0, 9, 2, 4), kit.overlap(2, 4, 0, 9), kit.overlap(0, 1, 5, 9)], [2, 2, 0]);
});
