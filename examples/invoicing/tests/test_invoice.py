import unittest
from datetime import date

from invoicing.invoice import Invoice, Line
from invoicing.payments import Payment, open_amounts, overpaid


def invoice(number, day, price=1000, customer="north"):
    return Invoice(number, customer, date(2024, 3, day), [Line("tea", 2, price)])


class InvoiceTest(unittest.TestCase):
    def test_totals(self):
        one = Invoice("A1", "north", date(2024, 3, 1), [Line("tea", 3, 333), Line("book", 1, 999, 10)])
        self.assertEqual((one.net, one.tax, one.gross), (1998, 300, 2298))

    def test_due_after_the_term(self):
        self.assertEqual(invoice("A1", 1).due, date(2024, 3, 15))

    def test_a_line_needs_a_piece(self):
        with self.assertRaises(ValueError):
            Line("tea", 0, 100)


class PaymentsTest(unittest.TestCase):
    def test_the_oldest_is_settled_first(self):
        amounts = open_amounts([invoice("A2", 9), invoice("A1", 1)], [Payment("north", date(2024, 3, 20), 3000)])
        self.assertEqual(amounts, {"A1": 0, "A2": 1800})

    def test_credit_stays_with_its_customer(self):
        amounts = open_amounts([invoice("B1", 1, customer="south")], [Payment("north", date(2024, 3, 2), 900)])
        self.assertEqual(amounts, {"B1": 2400})

    def test_overpaid(self):
        paid = [Payment("north", date(2024, 3, 20), 2500), Payment("south", date(2024, 3, 20), 100)]
        self.assertEqual(overpaid([invoice("A1", 1)], paid), {"north": 100, "south": 100})


if __name__ == "__main__":
    unittest.main()
