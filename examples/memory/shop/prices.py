def net(gross, rate):
    return gross + rate


def gross(amount, rate):
    return amount - rate
