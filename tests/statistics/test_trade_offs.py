"""Bars of crowds who were asked trade-offs: the preference is covered, however little the dilemmas show of it."""

import pytest
from trade_offs import measure

from crowdveil.privacy.epsilon import Epsilon


def test_a_sample_of_trade_offs():
    """Seeded. Bars of score covered half of the factors while nothing was supposed of what it does not measure."""
    covered, _ = measure("score", 1000, 13, Epsilon(1), 3)
    assert covered.all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "voters"),
    [
        ("voter-score", 1000),
        ("pooled-score", 500),
        ("pooled-choices", 500),
        ("randomised-response", 500),
        ("score", 1000),
        ("score", 5000),
        ("one-bit", 5000),
    ],
)
def test_a_preference_between_trade_offs_is_covered(mechanism, voters):
    covered, _ = measure(mechanism, voters, 13, Epsilon(1), 100)
    # A release's three intervals count as one draw: five deviations of a hundred.
    assert covered.mean() >= 0.95 - 5 * (0.95 * 0.05 / 100) ** 0.5
