"""The paper's evaluation, reproduced: every figure and every claim, with a verdict."""
