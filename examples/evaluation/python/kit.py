"""Eight small functions; each task of the evaluation breaks one of them."""


def clamp(value, low, high):
    """Return the value, or the bound that it lies beyond."""
    return max(low, min(high, value))


def last_page(total, size):
    """Return the number of the last page, at least 1."""
    return max(1, (total + size - 1) // size)


def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2 == 1:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def count_words(text):
    words = 0
    inside = False
    for character in text:
        if character == " ":
            inside = False
        elif not inside:
            inside = True
            words += 1
    return words


def digit_sum(number):
    total = 0
    number = abs(number)
    while number > 0:
        total += number % 10
        number //= 10
    return total


def run_length(text):
    """Return the length of the longest run of one character."""
    best = 0
    current = 0
    for place in range(len(text)):
        if place > 0 and text[place] == text[place - 1]:
            current += 1
        else:
            current = 1
        best = max(best, current)
    return best


def overlap(a, b, c, d):
    """Return how much of the interval a to b lies in c to d."""
    return max(0, min(b, d) - max(a, c))
