import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowdveil.errors import CrowdveilError
from crowdveil.privacy.epsilon import Epsilon, Epsilons

micros = st.integers(min_value=100, max_value=50_000_000)


@pytest.mark.parametrize(
    ("value", "micro"),
    [
        ("0.3", 300_000),
        (" 0.30 ", 300_000),
        ("3e-1", 300_000),
        (0.3, 300_000),
        (0.1, 100_000),
        (np.float64(0.7), 700_000),
        (np.int64(3), 3_000_000),
        (1, 1_000_000),
        (Decimal("2.5"), 2_500_000),
        (Fraction(1, 8), 125_000),
        ("0.0001", 100),
        (0.0001, 100),
        ("0.000101", 101),
        (50, 50_000_000),
    ],
)
def test_numbers_are_read_as_they_are_written(value, micro):
    assert Epsilon(value).micro == micro


@pytest.mark.parametrize(
    "value",
    [
        *(
            "nan",
            "1_0",
            "sNaN",
            "inf",
            "-inf",
            "",
            "a",
            "0,3",
            "0.3.1",
            "1e999999999",
            "1e-999999999",
            "1e99999999999999999999",
        ),
        *(float("nan"), float("inf"), -float("inf"), 0, 0.0, -0.0, -1, "-0.3", "0", True, None, b"1", [1]),
        *("0.0000999", 0.00001, "50.000001", 51, 1e300, Fraction(1, 100_000), Decimal("NaN")),
        *("0.3000001", 0.1 + 0.2, Fraction(1, 3), Decimal("1.0000000000000000000000000000000001")),
    ],
)
def test_everything_else_is_refused_and_named(value):
    with pytest.raises(CrowdveilError, match=r"from 0\.0001 to 50 with at most six decimals") as refusal:
        Epsilon(value)
    assert repr(value) in str(refusal.value)


@pytest.mark.parametrize("micro", [99, 0, -1, 50_000_001, 1.0, True, None, "300000"])
def test_a_wrong_number_of_millionths_cannot_be_built(micro):
    with pytest.raises(CrowdveilError):
        Epsilon.of_millionths(micro)


def test_the_text_of_a_refused_epsilon_keeps_its_sign():
    with pytest.raises(CrowdveilError, match=r"epsilon is '-0\.3':"):
        Epsilon.of_millionths(-300_000)


@given(micros)
def test_every_form_of_the_same_number_is_the_same_epsilon(micro):
    epsilon = Epsilon.of_millionths(micro)
    assert epsilon.value == float(Fraction(micro, 10**6))
    for form in (str(epsilon), epsilon.value, Fraction(micro, 10**6), Decimal(micro) / 10**6, f"{micro}e-6"):
        assert Epsilon(form) == epsilon


@given(micros)
def test_the_text_is_the_shortest_decimal(micro):
    text = str(Epsilon.of_millionths(micro))
    assert Fraction(text) == Fraction(micro, 10**6)
    assert text == format(Decimal(micro).scaleb(-6).normalize(), "f")


@given(micros, micros)
def test_epsilons_are_ordered_like_their_values(a, b):
    assert (Epsilon.of_millionths(a) < Epsilon.of_millionths(b)) == (Fraction(a) < Fraction(b))


@given(st.decimals(min_value="0.0001", max_value=50, places=7).filter(lambda d: d * 10**6 % 1 != 0))
def test_a_seventh_decimal_is_refused(value):
    with pytest.raises(CrowdveilError, match="more than six decimals"):
        Epsilon(value)


@pytest.mark.parametrize(
    "micro",
    [np.array([1e6]), np.array([1_000_000], np.int32), np.array([[1_000_000]]), np.array(1_000_000)],
)
def test_everybodys_millionths_are_a_vector_of_int64(micro):
    with pytest.raises(CrowdveilError, match="one-dimensional int64 array"):
        Epsilons.of_millionths(micro)


@pytest.mark.parametrize("micro", [-1_000_000, 0, 99, 50_000_001])
def test_one_epsilon_out_of_range_is_enough(micro):
    with pytest.raises(CrowdveilError, match=r"from 0\.0001 to 50"):
        Epsilons.of_millionths(np.array([1_000_000, micro, 1_000_000]))


@given(st.lists(micros, min_size=1, max_size=30))
def test_everybodys_epsilon_is_exactly_what_each_wrote(chosen):
    each = [Epsilon.of_millionths(micro) for micro in chosen]
    for written in (each, [str(e) for e in each], [e.value for e in each], np.array([e.value for e in each])):
        epsilons = Epsilons(written)
        assert list(epsilons) == each
    assert epsilons.micro.tolist() == chosen
    assert (epsilons.smallest, epsilons.largest) == (min(each), max(each))
    assert epsilons.common == (each[0] if len(set(each)) == 1 else None)
    assert pickle.loads(pickle.dumps(epsilons)) == epsilons
    assert epsilons[1:] == Epsilons(each[1:])


@pytest.mark.parametrize(
    "given", ["1", 1, None, [0.1, "x"], np.array(1), np.array([0.1, np.nan]), np.array([1e-7]), np.array([51])]
)
def test_what_is_no_list_of_epsilons_is_refused(given):
    with pytest.raises(CrowdveilError, match=r"must be a list|an epsilon is a number"):
        Epsilons(given)


def test_one_epsilon_for_all_travels_as_one_number():
    assert len(pickle.dumps(Epsilons.same(0.3, 1_000_000))) < 200


@given(st.lists(st.tuples(st.integers(1000, 50_000_000), st.integers(1, 10)), min_size=1, max_size=20))
def test_shares_never_exceed_the_whole(voters):
    whole, ways = (np.array(column) for column in zip(*voters, strict=True))
    shares = Epsilons.of_millionths(whole).split(ways).micro * ways
    assert (shares <= whole).all()
    assert (shares > whole - ways).all()


@given(micros, st.floats(min_value=0, max_value=1, exclude_min=True, exclude_max=True))
def test_two_parts_add_up_to_the_whole(micro, share):
    whole = Epsilon.of_millionths(micro)
    smaller = micro * min(Fraction(share), 1 - Fraction(share))
    if smaller < 99:
        with pytest.raises(CrowdveilError, match="is too small to be split"):
            whole.split(share)
    elif smaller > 100:
        part, rest = whole.split(share)
        assert abs(part.micro - micro * Fraction(share)) < Fraction(501, 1000)  # The nearest millionth.
        assert part.micro + rest.micro == micro
