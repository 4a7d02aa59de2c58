import unittest

import kit


class HiddenTest(unittest.TestCase):
    def test_all(self):
        self.assertEqual([kit.clamp(n, -3, 4) for n in (-9, -3, 0, 4, 9)], [-3, -3, 0, 4, 4])
        self.assertEqual([kit.last_page(n, 7) for n in (1, 7, 8, 14, 15)], [1, 1, 2, 2, 3])
        self.assertEqual([n for n in range(1890, 2010, 5) if kit.is_leap(n)], [1920, 1940, 1960, 1980, 2000])
        self.assertEqual([kit.median(v) for v in ([7], [1, 2], [9, 1, 5, 3], [2, 2, 8])], [7, 1.5, 4, 2])
        self.assertEqual([kit.count_words(t) for t in ("", " a ", "a b", "  a  b c")], [0, 1, 2, 3])
        self.assertEqual([kit.digit_sum(n) for n in (7, 10, 999, -41)], [7, 1, 27, 5])
        self.assertEqual([kit.run_length(t) for t in ("a", "ab", "aab", "abb", "abbaaa")], [1, 1, 2, 2, 3])
        self.assertEqual([kit.overlap(*v) for v in ((0, 9, 2, 4), (2, 4, 0, 9), (0, 2, 2, 4))], [2, 2, 0])
