"""Eq. (2) and its gradient, by another library than ours."""

import numpy as np
from scipy.stats import norm


def log_likelihood(differences, beta):
    """The sum over records j of ln Phi(beta . V_j), for the records V (records x features)."""
    return float(np.sum(norm.logcdf(differences @ beta)))


def gradient(differences, beta):
    """V' phi(V beta) / Phi(V beta)."""
    margins = differences @ beta
    return differences.T @ np.exp(norm.logpdf(margins) - norm.logcdf(margins))
