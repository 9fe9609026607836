"""Evaluation of mechanisms, releases and models: the paper's experiments, comparisons, a scorecard and an alignment."""
