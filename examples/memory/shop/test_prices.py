import unittest

from prices import gross, net


class PricesTest(unittest.TestCase):
    def test_net(self):
        self.assertEqual(net(119, 19), 100)

    def test_gross(self):
        self.assertEqual(gross(100, 19), 119)
