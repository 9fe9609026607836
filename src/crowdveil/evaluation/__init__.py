"""How good the mechanisms are: the paper's experiments, and mechanisms side by side."""
