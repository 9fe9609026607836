"""The paper's Section 5 as data: its grids, its defaults, its groups of voters, and what it leaves open.

What the paper does not say is chosen here; ``open_choices`` shows how much each choice matters.
"""

from __future__ import annotations

from crowdveil.evaluation.paper.groups import Groups

EPSILONS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.09, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0, 2.0, 3.0, 5.0, 10.0)
"""Section 5.1: the privacy parameters of every curve."""
VOTERS = (50, 100)
"""Figures 1 to 4."""
BOUNDS_EPSILON = 0.1
"""Figure 7: epsilon while B varies."""
REAL_COMPARISON_VOTERS = 100
"""Figure 8(d)."""
NO_PRIVACY_VOTERS, NO_PRIVACY_RECORDS = 50, 100
"""Figure 10(a)."""
NO_PRIVACY_REAL_VOTERS = 200
"""Figure 10(b)."""

RECOMMENDED_EPSILONS = (0.03, 0.1, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Where the recommended mechanisms are measured beside the paper's: some of the epsilons above."""

# Left open by the paper, and chosen here.
RECORDS_GRID = (20, 50, 100)
FEATURES_GRID = (5, 10, 15, 20, 25, 30)
DIMENSION_VOTERS = 100
DIMENSION_EPSILONS = (0.1, 1.0, 10.0)
BOUNDS_GRID = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
PERSONAL_VOTERS = (50, 100, 200)
REAL_VOTERS = (50, 100, 150, 200)
RECORD_BOUNDS_GRID = (1.0, 2.0, 4.0, 8.0)

QUICK_CROWDS, FULL_CROWDS = 10, 200


CONSERVATIVE_FRACTIONS = tuple((f, Groups(conservative=f)) for f in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
"""Figure 6(a): f_M stays 0.36, and the rest is liberal."""
CONSERVATIVE_EPSILONS = tuple((e, Groups(epsilon_c=e, epsilon_m=0.5)) for e in (0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5))
"""Figures 6(b) and 9(a): with eps_M = 0.5 instead of its default."""
MODERATE_EPSILONS = tuple((e, Groups(epsilon_m=e)) for e in (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5))
"""Figures 6(c) and 9(b)."""
