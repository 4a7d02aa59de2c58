function clamp(value, low, high) {
  return Math.max(low, Math.min(high, value));
}

function lastPage(total, size) {
  return Math.max(1, Math.ceil(total / size));
}

function isLeap(year) {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

function median(values) {
  const ordered = [...values].sort((a, b) => a - b);
  const middle = Math.floor(ordered.length / 2);
  if (ordered.length % 2 === 1) return ordered[middle];
  return (ordered[middle - 1] + ordered[middle]) / 2;
}

function countWords(text) {
  return text.split(" ").filter((word) => word !== "").length;
}

function digitSum(number) {
  let total = 0;
  for (let left = Math.abs(number); left > 0; left = Math.floor(left / 10)) total += left % 10;
  return total;
}

function runLength(text) {
  let best = 0;
  let current = 0;
  for (let place = 0; place < text.length; place++) {
    current = place > 0 && text[place] === text[place - 1] ? current + 1 : 1;
    best = Math.max(best, current);
  }
  return best;
}

function overlap(a, b, c, d) {
  return Math.max(0, Math.min(b, d) - Math.max(a, c));
}

module.exports = { clamp, lastPage, isLeap, median, countWords, digitSum, runLength, overlap };
