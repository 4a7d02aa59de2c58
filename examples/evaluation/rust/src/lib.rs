//! Eight small functions.

pub fn clamp(value: i64, low: i64, high: i64) -> i64 {
    low.max(high.min(value))
}

pub fn last_page(total: i64, size: i64) -> i64 {
    1.max((total + size - 1) / size)
}

pub fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

pub fn median(values: &[i64]) -> f64 {
    let mut ordered = values.to_vec();
    ordered.sort();
    let middle = ordered.len() / 2;
    if ordered.len() % 2 == 1 {
        return ordered[middle] as f64;
    }
    (ordered[middle - 1] + ordered[middle]) as f64 / 2.0
}

pub fn count_words(text: &str) -> usize {
    text.split(' ').filter(|word| !word.is_empty()).count()
}

pub fn digit_sum(number: i64) -> i64 {
    let mut left = number.abs();
    let mut total = 0;
    while left > 0 {
        total += left % 10;
        left /= 10;
    }
    total
}

pub fn run_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let (mut best, mut current) = (0, 0);
    for place in 0..bytes.len() {
        current = if place > 0 && bytes[place] == bytes[place - 1] { current + 1 } else { 1 };
        best = best.max(current);
    }
    best
}

pub fn overlap(a: i64, b: i64, c: i64, d: i64) -> i64 {
    0.max(b.min(d) - a.max(c))
}
