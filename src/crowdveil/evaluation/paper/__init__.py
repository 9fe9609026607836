"""The paper's evaluation, done again: every figure, every claim, with a verdict."""
