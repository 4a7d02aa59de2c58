import unittest

from invoicing import money


class MoneyTest(unittest.TestCase):
    def test_parse(self):
        for text, cents in (("12.50", 1250), ("12", 1200), ("-0.05", -5), ("0.5", 50)):
            self.assertEqual(money.parse(text), cents)

    def test_parse_refuses_what_is_no_amount(self):
        for text in ("", "1.234", "ten", "1.x"):
            with self.assertRaises(ValueError):
                money.parse(text)

    def test_show(self):
        self.assertEqual(money.show(123450), "1,234.50")
        self.assertEqual(money.show(-5), "-0.05")

    def test_percent_rounds_half_a_cent_away_from_zero(self):
        self.assertEqual(money.percent(250, 5), 13)
        self.assertEqual(money.percent(-250, 5), -13)

    def test_split_loses_nothing(self):
        self.assertEqual(money.split(100, 3), [34, 33, 33])
        with self.assertRaises(ValueError):
            money.split(100, 0)


if __name__ == "__main__":
    unittest.main()
