"""Amounts of money in whole cents, so that nothing is lost in rounding."""


def parse(text):
    """Return the cents of an amount such as "12.50", "12" or "-0.05"."""
    sign = -1 if text.startswith("-") else 1
    whole, _, rest = text.lstrip("+-").partition(".")
    if not whole.isdigit() or (rest and not rest.isdigit()) or len(rest) > 2:
        raise ValueError("not an amount: %r" % text)
    return sign * (int(whole) * 100 + int((rest + "00")[:2]))


def show(cents):
    """Return an amount for people: "1,234.50"."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return "%s%s.%02d" % (sign, format(whole, ","), rest)


def percent(cents, rate):
    """Return a percentage of an amount, half a cent rounded away from zero."""
    sign = -1 if cents < 0 else 1
    return sign * ((abs(cents) * rate + 50) // 100)


def split(cents, parts):
    """Divide an amount into parts that differ by one cent at most and add up to it."""
    if parts < 1:
        raise ValueError("at least one part")
    share, left = divmod(cents, parts)
    return [share + 1] * left + [share] * (parts - left)
