import unittest

import kit


class KitTest(unittest.TestCase):
    def test_clamp(self):
        self.assertEqual([kit.clamp(n, 0, 10) for n in (-5, 5, 15)], [0, 5, 10])

    def test_last_page(self):
        self.assertEqual([kit.last_page(n, 10) for n in (0, 10, 11)], [1, 1, 2])

    def test_is_leap(self):
        self.assertEqual([kit.is_leap(n) for n in (2000, 2023, 2024)], [True, False, True])
        self.assertFalse(kit.is_leap(1900))

    def test_median(self):
        self.assertEqual(kit.median([3, 1, 2]), 2)
        self.assertEqual(kit.median([4, 1, 3, 2]), 2.5)

    def test_count_words(self):
        self.assertEqual(kit.count_words("one two  three"), 3)

    def test_digit_sum(self):
        self.assertEqual([kit.digit_sum(n) for n in (0, 905, -12)], [0, 14, 3])

    def test_run_length(self):
        self.assertEqual([kit.run_length(t) for t in ("", "abbbc", "aa")], [0, 3, 2])

    def test_overlap(self):
        self.assertEqual(kit.overlap(0, 5, 3, 9), 2)
        self.assertEqual(kit.overlap(0, 1, 3, 9), 0)
