"""Evaluation of mechanisms, releases and models: the paper's experiments, comparisons, a scorecard, an alignment."""
