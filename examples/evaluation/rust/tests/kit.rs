use kit::*;

#[test]
fn clamps() {
    assert_eq!([clamp(-5, 0, 10), clamp(5, 0, 10), clamp(15, 0, 10)], [0, 5, 10]);
}

#[test]
fn counts_pages() {
    assert_eq!([last_page(0, 10), last_page(10, 10), last_page(11, 10)], [1, 1, 2]);
}

#[test]
fn knows_leap_years() {
    assert_eq!([is_leap(1900), is_leap(2000), is_leap(2023), is_leap(2024)], [false, true, false, true]);
}

#[test]
fn finds_the_median() {
    assert_eq!([median(&[3, 1, 2]), median(&[4, 1, 3, 2])], [2.0, 2.5]);
}

#[test]
fn counts_words() {
    assert_eq!(count_words("one two  three"), 3);
}

#[test]
fn adds_digits() {
    assert_eq!([digit_sum(0), digit_sum(905), digit_sum(-12)], [0, 14, 3]);
}

#[test]
fn measures_runs() {
    assert_eq!([run_length(""), run_length("abbbc"), run_length("aa")], [0, 3, 2]);
}

#[test]
fn measures_overlaps() {
    assert_eq!([overlap(0, 5, 3, 9), overlap(0, 1, 3, 9)], [2, 0]);
}
