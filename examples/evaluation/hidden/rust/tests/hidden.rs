use kit::*;

#[test]
fn all() {
    assert_eq!([clamp(-9, -3, 4), clamp(0, -3, 4), clamp(9, -3, 4)], [-3, 0, 4]);
    assert_eq!([last_page(7, 7), last_page(8, 7), last_page(15, 7)], [1, 2, 3]);
    assert_eq!([is_leap(1600), is_leap(1700), is_leap(1904), is_leap(2001)], [true, false, true, false]);
    assert_eq!([median(&[7]), median(&[1, 2]), median(&[9, 1, 5, 3])], [7.0, 1.5, 4.0]);
    assert_eq!([count_words(""), count_words(" a "), count_words("  a  b c")], [0, 1, 3]);
    assert_eq!([digit_sum(7), digit_sum(999), digit_sum(-41)], [7, 27, 5]);
    assert_eq!([run_length("a"), run_length("ab"), run_length("abbaaa")], [1, 1, 3]);
    assert_eq!([overlap(0, 9, 2, 4), overlap(2, 4, 0, 9), overlap(0, 2, 2, 4)], [2, 2, 0]);
}
