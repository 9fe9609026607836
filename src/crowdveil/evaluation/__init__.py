"""The quality of mechanisms: the paper's experiments, and mechanisms side by side."""
