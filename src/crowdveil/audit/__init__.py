"""Attacks on our own promises, which measure what somebody who sees the outputs can learn."""
