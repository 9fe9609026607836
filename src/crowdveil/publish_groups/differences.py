"""What differs between the preferences of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from statistics import NormalDist

import numpy as np

from crowdveil.effect_release import GroupDifference
from crowdveil.estimation.ratios import told_apart
from crowdveil.privacy.intervals import ERROR_BAR
from crowdveil.releases import Release


def preference_differences(releases: Mapping[str, Release]) -> tuple[GroupDifference, ...]:
    """Compare groups along every factor, the first less the second, around the unshrunk estimates.

    Errors of different people's releases are independent: they add up by their squares. Which differences are told from
    noise and chance is judged of all together.
    """
    found, p_values = [], []
    for one, other in combinations(releases, 2):
        for k, factor in enumerate(releases[one].study.factors):
            ends = [releases[label].factor_intervals[k] for label in (one, other)]
            centers = [float(low + high) / 2 for low, high in ends]
            reach = float(np.hypot(*((high - low) / 2 for low, high in ends)))
            known = bool(releases[one].known[k] and releases[other].known[k])
            gap = centers[0] - centers[1]
            quantile = NormalDist().inv_cdf((1 + ERROR_BAR) / 2)
            p_value = 2 * (1 - NormalDist().cdf(abs(gap) / (reach / quantile))) if known and reach > 0 else 1.0
            found.append(GroupDifference(factor.name, one, other, gap, gap - reach, gap + reach, told_apart=False))
            p_values.append(p_value)
    return tuple(replace(one, told_apart=told) for one, told in zip(found, told_apart(p_values), strict=True))
