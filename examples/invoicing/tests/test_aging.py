import unittest
from datetime import date, timedelta

from invoicing.aging import column, days_late, table
from invoicing.invoice import Invoice, Line

DUE = date(2024, 5, 1)


def after(days):
    return DUE + timedelta(days=days)


class DaysLateTest(unittest.TestCase):
    def test_not_late_before_the_due_date(self):
        self.assertEqual(days_late(DUE, after(-10)), 0)

    def test_three_days_of_grace(self):
        self.assertEqual(days_late(DUE, after(3)), 0)
        self.assertEqual(days_late(DUE, after(4)), 1)

    def test_counts_from_the_end_of_grace(self):
        self.assertEqual(days_late(DUE, after(33)), 30)


class ColumnTest(unittest.TestCase):
    def test_borders(self):
        for days, name in ((3, "current"), (4, "1-30"), (33, "1-30"), (34, "31-60"), (93, "61-90"), (94, "over 90")):
            self.assertEqual(column(DUE, after(days)), name)

    def test_table_adds_up_what_is_open(self):
        invoices = [Invoice(number, "north", DUE, [Line("tea", 1, 100)], term_days=0) for number in ("A", "B", "C")]
        self.assertEqual(table(invoices, {"A": 120, "B": 60}, after(10)), {"1-30": 180})


if __name__ == "__main__":
    unittest.main()
