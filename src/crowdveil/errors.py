"""The one exception that a user's mistake raises."""


class CrowdveilError(Exception):
    """Something the user can fix: the message says what was given, what is allowed and what to do.

    A bug inside crowdveil raises any other exception, so that the two are never confused.
    """


class BudgetExceeded(CrowdveilError):
    """A release was refused because the privacy budget of its data does not cover it."""

    def __init__(self, message: str, requested_micro: int, remaining_micro: int) -> None:
        # All three go into ``args``, so that the refusal survives the trip between two processes.
        super().__init__(message, requested_micro, remaining_micro)
        self.message = message
        self.requested_micro = requested_micro
        self.remaining_micro = remaining_micro

    def __str__(self) -> str:
        return self.message

    @property
    def missing_micro(self) -> int:
        """By how much the request exceeds what remains, in micro-epsilons."""
        return self.requested_micro - self.remaining_micro


class ImpossibleEstimate(CrowdveilError):
    """The estimate that was asked for does not exist for this data."""
