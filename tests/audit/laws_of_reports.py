"""Closed forms of what a small crowd reports."""

import math

import numpy as np
from scipy.stats import binom


def flipped_law(first):
    """How often one of ten randomised choices is +: the first voter's true choice is +1 or -1, all others' is -1."""
    keep = math.e / (1 + math.e)
    others, yes = binom.pmf(np.arange(10), 9, 1 - keep), keep if first > 0 else 1 - keep
    return yes * np.append(0, others) + (1 - yes) * np.append(others, 0)
