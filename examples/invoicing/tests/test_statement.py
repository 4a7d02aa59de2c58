import unittest
from datetime import date

from invoicing import statement
from invoicing.invoice import Invoice, Line
from invoicing.payments import Payment


class StatementTest(unittest.TestCase):
    def setUp(self):
        invoices = [Invoice("A%d" % day, "north", date(2024, 3, day), [Line("tea", 1, 1000)]) for day in range(1, 6)]
        self.rows = statement.entries(invoices, [Payment("north", date(2024, 3, 3), 500)], "north")

    def test_oldest_first(self):
        self.assertEqual([text for _, text, _ in self.rows][:4], ["invoice A1", "invoice A2", "invoice A3", "payment"])

    def test_balance(self):
        self.assertEqual(statement.balance(self.rows), 5 * 1200 - 500)

    def test_pages(self):
        self.assertEqual(statement.page_count([]), 1)
        self.assertEqual(statement.page_count(self.rows, 3), 2)
        self.assertEqual(statement.page_count(self.rows, 4), 2)
        self.assertEqual(len(statement.page(self.rows, 2, 4)), 2)
        with self.assertRaises(IndexError):
            statement.page(self.rows, 3, 3)

    def test_the_balance_is_carried_forward(self):
        lines = statement.render(self.rows, 2, 3).splitlines()
        self.assertEqual(lines[0], "carried forward 36.00")
        self.assertTrue(lines[-1].endswith("55.00"))


if __name__ == "__main__":
    unittest.main()
