import unittest
from datetime import date, timedelta

from invoicing.invoice import Invoice, Line
from invoicing.reminders import letter, level, may_send, worklist

DUE = date(2024, 5, 1)
GRACE = 3


def late(days):
    return DUE + timedelta(days=GRACE + days)


class LevelTest(unittest.TestCase):
    def test_none_before_the_due_date(self):
        self.assertIsNone(level(DUE, DUE - timedelta(days=20)))

    def test_none_on_the_due_date(self):
        self.assertIsNone(level(DUE, DUE))

    def test_between_the_borders(self):
        for days, name in ((7, "first"), (20, "second"), (90, "final")):
            self.assertEqual(level(DUE, late(days)), name)

    def test_each_begins_on_its_day(self):
        for days, name in ((1, "first"), (14, "second"), (28, "final")):
            self.assertEqual(level(DUE, late(days)), name)


class WorklistTest(unittest.TestCase):
    def test_the_pause_between_two_reminders(self):
        self.assertTrue(may_send([], late(1)))
        self.assertFalse(may_send([late(1)], late(7)))
        self.assertTrue(may_send([late(1)], late(8)))

    def test_the_gravest_first_and_nothing_for_what_is_paid(self):
        invoices = [
            Invoice(number, "north", DUE - timedelta(days=days), [Line("tea", 1, 100)], term_days=0)
            for number, days in (("A", 0), ("B", 30), ("C", 30), ("D", 12))
        ]
        found = worklist(invoices, {"A": 120, "B": 120, "D": 120}, {"A": [late(4)]}, late(9))
        self.assertEqual(found, [("B", "final"), ("D", "second")])

    def test_a_letter_names_the_fee(self):
        invoice = Invoice("A", "north", DUE, [Line("tea", 1, 10000)], term_days=0)
        self.assertEqual(
            letter(invoice, 12000, "second"),
            "second reminder: invoice A, due 2024-05-01: 120.00 and a fee of 5.00, together 125.00",
        )


if __name__ == "__main__":
    unittest.main()
