"""VLCP: which of two mechanisms is recommended where, beside what `crowdveil compare --paradigm vlcp` measured."""

import numpy as np
import pytest

from crowdveil.privacy.epsilon import Epsilons
from crowdveil.privacy.guarantee import PARADIGMS
from crowdveil.privacy.mechanisms.registry import recommended
from crowdveil.study.bundled import load_study, synthetic_study

MORAL_MACHINE = load_study("moral-machine")


@pytest.mark.parametrize(
    ("study", "voters", "epsilon", "name"),
    [
        # Share of the accuracy without privacy, algorithm-1 against voter-score.
        (synthetic_study(10, 100), 50, 0.5, "voter-score"),  # 0.737 against 0.757
        (synthetic_study(10, 100), 50, 2.0, "voter-score"),  # 0.933 against 0.944
        (synthetic_study(10, 100), 50, 3.0, "algorithm-1"),
        (synthetic_study(10, 50), 100, 0.5, "voter-score"),  # 0.831 against 0.842
        (synthetic_study(23, 13), 200, 0.5, "algorithm-1"),  # 0.779 against 0.763
        (MORAL_MACHINE, 1573, 0.03, "algorithm-1"),  # 0.833 against 0.790
        (MORAL_MACHINE, 1573, 0.05, "algorithm-1"),  # 0.877 against 0.870
        (MORAL_MACHINE, 1573, 0.1, "voter-score"),  # 0.909 against 0.946
        (MORAL_MACHINE, 1573, 1.0, "voter-score"),  # 0.924 against 1.006
    ],
)
def test_the_better_one_is_recommended(study, voters, epsilon, name):
    assert (
        recommended(
            PARADIGMS["vlcp"],
            study,
            Epsilons.of_millionths(np.full(voters, round(epsilon * 1e6))),
        )
        == name
    )
