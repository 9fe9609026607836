"""The questions of a poll that can make groups of its voters: one answer each, of a few that are public."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from crowdveil.effect_release import Effects
from crowdveil.protocol.polls import Poll
from crowdveil.protocol.questions import Answer, Question, QuestionKind, Texts, host_words

MOST_GROUPS = 12
_ONE_ANSWER = (QuestionKind.SINGLE, QuestionKind.NUMBER, QuestionKind.SCALE)


def grouping_questions(poll: Poll) -> tuple[Question, ...]:
    """Return the questions by which voters can be grouped: a choice of one, a scale, or a number cut into ranges.

    Several answers at once and free text make no groups, attention checks tell nothing of a voter, and of too many
    groups nothing could be told.
    """
    return tuple(
        question
        for question in poll.sent_questions
        if question.kind in _ONE_ANSWER and question.expected is None and len(question.levels) <= MOST_GROUPS
    )


def group_labels(question: Question) -> tuple[str, ...]:
    """Return the names of the groups: options by their ids, ranges by their numbers."""
    return tuple(group_label(question, level) for level in question.levels)


def group_label(question: Question, answer: Answer) -> str:
    """Return the name of the group of a voter with this answer."""
    return question.range_words(answer) if isinstance(answer, int) else str(answer)


def group_of(question: Question, about: Mapping[str, Answer]) -> str | None:
    """Return the group of a voter, given all that she said of herself; None if she did not answer."""
    return group_label(question, about[question.id]) if question.id in about else None


def effects_in_words(effects: Effects, poll: Poll, language: str = "en") -> Effects:
    """Return effects with question and options in a language's words, where their file has ids."""
    question = next((one for one in poll.questions if one.id == effects.question), None)
    if question is None:
        return effects
    said = {option.id: _spoken(option.text, language) for option in question.options}
    if len(set(said.values())) < len(said):
        said = {}

    def word(label: str) -> str:
        return said.get(label, label)

    return replace(
        effects,
        question=_spoken(question.text, language),
        groups=tuple(replace(one, label=word(one.label)) for one in effects.groups),
        differences=tuple(replace(one, group=word(one.group), other=word(one.other)) for one in effects.differences),
    )


def _spoken(texts: Texts, language: str) -> str:
    return texts.get(language) or host_words(texts)
