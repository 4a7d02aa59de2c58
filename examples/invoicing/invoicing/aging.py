"""How late an invoice is."""

GRACE_DAYS = 3
COLUMNS = ((0, "current"), (30, "1-30"), (60, "31-60"), (90, "61-90"))


def days_late(due, today):
    """Return the days since the grace period ended; zero for an invoice that is not late."""
    return max(0, (today - due).days - GRACE_DAYS)


def column(due, today):
    """Return the column of the aging table that an invoice falls into."""
    late = days_late(due, today)
    for last, name in COLUMNS:
        if late <= last:
            return name
    return "over 90"


def table(invoices, amounts, today):
    """Return column to the amount open in it, columns in order, empty ones left out."""
    totals = {}
    for invoice in invoices:
        amount = amounts.get(invoice.number, 0)
        if amount:
            name = column(invoice.due, today)
            totals[name] = totals.get(name, 0) + amount
    order = [name for _, name in COLUMNS] + ["over 90"]
    return {name: totals[name] for name in order if name in totals}
