const test = require("node:test");
const assert = require("node:assert");
const kit = require("../kit");

test("clamp", () => assert.deepStrictEqual([-5, 5, 15].map((n) => kit.clamp(n, 0, 10)), [0, 5, 10]));
test("lastPage", () => assert.deepStrictEqual([0, 10, 11].map((n) => kit.lastPage(n, 10)), [1, 1, 2]));
test("isLeap", () =>
  assert.deepStrictEqual([1900, 2000, 2023, 2024].map((n) => kit.isLeap(n)), [false, true, false, true]));
test("median", () => assert.deepStrictEqual([kit.median([10, 9, 2]), kit.median([4, 1, 3, 2])], [9, 2.5]));
test("countWords", () => assert.strictEqual(kit.countWords("one two  three"), 3));
test("digitSum", () => assert.deepStrictEqual([0, 905, -12].map((n) => kit.digitSum(n)), [0, 14, 3]));
test("runLength", () => assert.deepStrictEqual(["", "abbbc", "aa"].map((t) => kit.runLength(t)), [0, 3, 2]));
test("overlap", () => assert.deepStrictEqual([kit.overlap(0, 5, 3, 9), kit.overlap(0, 1, 3, 9)], [2, 0]));
