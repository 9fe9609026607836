"""Whatever voters and the host do in whatever order, the store agrees with a few lines of Python."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from datetime import date

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.service.voters import poll, report_row

from crowdveil.errors import Reason
from crowdveil.protocol.submission import SubmissionStatus
from crowdveil.service.store.store import open_store
from crowdveil.service.store.submissions import Outcome

TODAY = date(2026, 5, 4)
QUOTA = 3
TOKENS = [f"{letter * 21}A" for letter in "ABCDE"]


class Participation(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.things = ExitStack()
        directory = self.things.enter_context(tempfile.TemporaryDirectory())
        self.store = self.things.enter_context(open_store(f"sqlite:///{directory}/x.sqlite"))
        self.asked = poll(quota=QUOTA)
        self.store.polls.add(self.asked)
        self.stored: dict[str, int] = {}
        self.withdrawn: set[str] = set()
        self.closed = False

    def teardown(self) -> None:
        self.things.close()

    @rule(sent=st.lists(st.tuples(st.sampled_from(TOKENS), st.integers(0, 1)), min_size=1, max_size=4))
    def put(self, sent: list[tuple[str, int]]) -> None:
        expected = [self.expected(token, number) for token, number in sent]
        made = [report_row(self.asked, number, token) for token, number in sent]
        assert self.store.submissions.put(made, TODAY) == expected

    def expected(self, token: str, number: int) -> Outcome:
        if token in self.stored:
            return SubmissionStatus.ALREADY_STORED if self.stored[token] == number else Reason.DIFFERENT_REPORT
        if token in self.withdrawn:
            return Reason.WITHDRAWN
        if self.closed:
            return Reason.CLOSED
        if len(self.stored) == QUOTA:
            return Reason.FULL
        self.stored[token] = number
        return SubmissionStatus.STORED

    @rule(token=st.sampled_from(TOKENS))
    def withdraw(self, token: str) -> None:
        assert self.store.submissions.withdraw("p", report_row(self.asked, 0, token).id) == (token in self.stored)
        if self.stored.pop(token, None) is not None:
            self.withdrawn.add(token)

    @rule(closed=st.booleans())
    def close_or_reopen(self, closed: bool) -> None:
        (self.store.polls.close if closed else self.store.polls.reopen)("p")
        self.closed = closed

    @invariant()
    def what_is_there_is_what_was_stored(self) -> None:
        there = {report.id: dict(report.body) for batch in self.store.submissions.reports("p") for report in batch}
        made = {report_row(self.asked, number, token).id: number for token, number in self.stored.items()}
        assert set(there) == set(made)
        status = self.store.polls.get("p")
        assert status is not None
        assert status.participants == len(made)


TestParticipation = Participation.TestCase
TestParticipation.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
