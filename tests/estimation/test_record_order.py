import numpy as np
import pytest

from crowdveil.errors import CrowdveilError
from crowdveil.estimation.kernel import padded
from crowdveil.estimation.l1_ball import fill_columns, largest_difference, new_sorter


def columns_of(records: np.ndarray, bound: float = 1.0) -> np.ndarray:
    count, features = records.shape
    columns = np.full((features, padded(count)), np.nan)
    fill_columns(np.ascontiguousarray(records).reshape(-1), bound, new_sorter(count, features), columns)
    return columns


def sorted_rows(rows: np.ndarray) -> list[tuple[float, ...]]:
    return sorted(map(tuple, rows.tolist()))


@pytest.mark.parametrize("count", [1, 2, 3, 13, 100, 512, 513, 1500])
@pytest.mark.parametrize("kind", ["distinct", "repeated"])
def test_columns_hold_the_records_in_an_order_of_their_own(count, kind):
    rng = np.random.default_rng(count)
    records = rng.normal(size=(count, 5)) if kind == "distinct" else rng.integers(-1, 2, (count, 5)).astype(np.int8)
    columns = columns_of(records, bound=2.0)
    assert sorted_rows(columns[:, :count].T) == sorted_rows(2.0 * records)
    assert not columns[:, count:].any()
    for _ in range(3):
        np.testing.assert_array_equal(columns_of(rng.permutation(records), bound=2.0), columns)


def test_records_with_equal_keys_are_still_put_in_order():
    weights = new_sorter(2, 2).weights
    records = np.array([[weights[1], 0.0], [0.0, weights[0]], [weights[1], 0.0], [0.0, weights[0]]])
    assert len(set((records @ weights[:2]).tolist())) == 1
    forward, backward = columns_of(records), columns_of(records[[1, 3, 0, 2]])
    np.testing.assert_array_equal(forward, backward)
    assert sorted_rows(forward.T) == sorted_rows(records)


def test_largest_difference():
    assert largest_difference(np.array([[-128, 3]], dtype=np.int8), np.array([0, 1])) == 128.0
    assert largest_difference(np.zeros((0, 3)), np.array([0, 0])) == 0.0


@pytest.mark.parametrize(
    ("differences", "offsets", "message"),
    [
        (np.zeros(3), np.array([0, 3]), "records x features"),
        (np.zeros((3, 0)), np.array([0, 3]), "records x features"),
        (np.zeros((3, 2), dtype=np.int32), np.array([0, 3]), "int8 or float64"),
        (np.zeros((3, 2)), np.array([0, 2]), "number of records, 3"),
        (np.zeros((3, 2)), np.array([1, 3]), "number of records, 3"),
        (np.zeros((3, 2)), np.array([0, 2, 1, 3]), "number of records, 3"),
        (np.zeros((3, 2)), np.array([0.0, 3.0]), "int64"),
        (np.zeros((3, 2)), np.array([], dtype=np.int64), "int64"),
        (np.array([[1.0, np.nan]]), np.array([0, 1]), "finite"),
        (np.array([[1.0, -np.inf]]), np.array([0, 1]), "finite"),
    ],
)
def test_nonsense_is_refused(differences, offsets, message):
    with pytest.raises(CrowdveilError, match=message):
        largest_difference(differences, offsets)
