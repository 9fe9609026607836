"""Every order is equally likely, and equal keys are drawn again."""

from itertools import permutations

import numpy as np

from crowdveil.privacy.mechanisms.reports import random_orders


class Keys:
    """Gives out keys from a list, a batch a request."""

    def __init__(self, *batches):
        self.batches = [np.array(batch) for batch in batches]
        self.asked = []

    def uniform(self, below, rows, columns):
        self.asked.append((below, rows, columns))
        return self.batches.pop(0)


def test_every_order_of_the_keys_is_another_order_of_the_places():
    keys = list(permutations(range(4)))
    orders = random_orders(24, 4, Keys(keys))
    assert {tuple(order) for order in orders.tolist()} == set(keys)


def test_rows_with_equal_keys_are_drawn_again_until_they_differ():
    noise = Keys([[5, 1, 9], [7, 7, 2], [3, 4, 3]], [[8, 8, 1], [2, 1, 0]], [[1, 2, 0]])
    orders = random_orders(3, 3, noise)
    assert orders.tolist() == [[1, 0, 2], [2, 0, 1], [2, 1, 0]]
    assert [rows for _, rows, _ in noise.asked] == [3, 2, 1]
    assert len({below for below, _, _ in noise.asked}) == 1
