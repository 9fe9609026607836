"""Estimation: the probit likelihood, each voter's fit, their mean, the crowd's preference from scores or choices."""
