"""Which payment settles which invoice."""


class Payment:
    """Money that came in from a customer."""

    def __init__(self, customer, received, amount):
        self.customer = customer
        self.received = received
        self.amount = amount


def open_amounts(invoices, payments):
    """Return invoice number to the amount still open; the oldest invoice is settled first."""
    credit = {}
    for payment in payments:
        credit[payment.customer] = credit.get(payment.customer, 0) + payment.amount
    still_open = {}
    for invoice in sorted(invoices, key=lambda each: (each.due, each.number)):
        settled = min(invoice.gross, credit.get(invoice.customer, 0))
        credit[invoice.customer] = credit.get(invoice.customer, 0) - settled
        still_open[invoice.number] = invoice.gross - settled
    return still_open


def overpaid(invoices, payments):
    """Return what each customer paid beyond all invoices."""
    owed = {}
    for invoice in invoices:
        owed[invoice.customer] = owed.get(invoice.customer, 0) + invoice.gross
    paid = {}
    for payment in payments:
        paid[payment.customer] = paid.get(payment.customer, 0) + payment.amount
    return {name: amount - owed.get(name, 0) for name, amount in paid.items() if amount > owed.get(name, 0)}
