"""Which reminder a customer gets."""

from invoicing import money
from invoicing.aging import days_late

LEVELS = ((28, "final"), (14, "second"), (1, "first"))
PAUSE_DAYS = 7
FEES = {"first": 0, "second": 500, "final": 1500}


def level(due, today):
    """Return the reminder that is due today, or None."""
    late = days_late(due, today)
    for begins, name in LEVELS:
        if late > begins:
            return name
    return None


def may_send(sent, today):
    """Say whether the pause since the last reminder is over."""
    if not sent:
        return True
    return (today - max(sent)).days >= PAUSE_DAYS


def worklist(invoices, amounts, sent, today):
    """Return (number, level) of each reminder to send today, the gravest first."""
    found = []
    for invoice in invoices:
        wanted = level(invoice.due, today)
        if wanted and amounts.get(invoice.number, 0) and may_send(sent.get(invoice.number, []), today):
            found.append((invoice.number, wanted))
    order = [name for _, name in LEVELS]
    return sorted(found, key=lambda pair: (order.index(pair[1]), pair[0]))


def letter(invoice, amount, name):
    """Return the text of a reminder."""
    total = amount + FEES[name]
    text = "%s reminder: invoice %s, due %s: %s" % (name, invoice.number, invoice.due, money.show(amount))
    if FEES[name]:
        text += " and a fee of %s, together %s" % (money.show(FEES[name]), money.show(total))
    return text
