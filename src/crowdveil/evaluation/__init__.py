"""How good mechanisms, a release and other deciders are: the paper's experiments, comparisons, a scorecard, models."""
