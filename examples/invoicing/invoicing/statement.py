"""A customer's account as text."""

from invoicing import money

ROWS = 20


def entries(invoices, payments, customer):
    """Return (day, text, amount) of all that happened, oldest first; payments are negative."""
    found = [(each.issued, "invoice %s" % each.number, each.gross) for each in invoices if each.customer == customer]
    found += [(each.received, "payment", -each.amount) for each in payments if each.customer == customer]
    return sorted(found, key=lambda entry: (entry[0], entry[1]))


def balance(rows):
    """Return what the customer owes after all rows."""
    return sum(amount for _, _, amount in rows)


def page_count(rows, size=ROWS):
    """Return how many pages the rows fill; an empty account still has one."""
    return max(1, (len(rows) + size - 1) // size)


def page(rows, number, size=ROWS):
    """Return the rows of a page, counted from one."""
    if not 1 <= number <= page_count(rows, size):
        raise IndexError("no page %d" % number)
    return rows[(number - 1) * size : number * size]


def render(rows, number, size=ROWS):
    """Return a page with the balance carried forward."""
    carried = balance(rows[: (number - 1) * size])
    lines = ["carried forward %s" % money.show(carried)] if number > 1 else []
    for day, text, amount in page(rows, number, size):
        carried += amount
        lines.append("%s  %-16s %12s %12s" % (day.isoformat(), text, money.show(amount), money.show(carried)))
    return "\n".join(lines)
