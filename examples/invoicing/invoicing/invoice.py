"""An invoice and its lines."""

from datetime import timedelta

from invoicing import money

TERM_DAYS = 14


class Line:
    """One position: so many pieces of something at a price."""

    def __init__(self, text, quantity, price, tax_rate=20):
        if quantity < 1:
            raise ValueError("a line needs at least one piece")
        self.text = text
        self.quantity = quantity
        self.price = price
        self.tax_rate = tax_rate

    @property
    def net(self):
        return self.quantity * self.price


class Invoice:
    """What a customer owes, since when, and until when it may be paid."""

    def __init__(self, number, customer, issued, lines, term_days=TERM_DAYS):
        self.number = number
        self.customer = customer
        self.issued = issued
        self.lines = list(lines)
        self.due = issued + timedelta(days=term_days)

    @property
    def net(self):
        return sum(line.net for line in self.lines)

    @property
    def tax(self):
        """Tax is rounded once for each rate, as the tax office wants it."""
        by_rate = {}
        for line in self.lines:
            by_rate[line.tax_rate] = by_rate.get(line.tax_rate, 0) + line.net
        return sum(money.percent(net, rate) for rate, net in by_rate.items())

    @property
    def gross(self):
        return self.net + self.tax
