"""Effects as everybody reads them: how choices went, factor by factor, and for each group of voters side by side.

Whatever stands here follows from the file of effects, which is public: nothing else is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from crowdveil.effect_release import Effect, Effects
from crowdveil.pages.reading import one_line
from crowdveil.service.groupings import effects_in_words
from crowdveil.service.poll import HostedPoll
from crowdveil.service.public.result import Respect, spoken_factor
from crowdveil.service.public.words import Words
from crowdveil.service.store.effects import StoredEffects
from crowdveil.study.translations import words as study_words


@dataclass(frozen=True)
class GroupTrack:
    """One group's place between the poles of a factor."""

    label: str
    """Empty for everybody."""
    respect: Respect


@dataclass(frozen=True)
class FactorTracks:
    """A factor with a track for each group, and in words whether they differ."""

    title: str
    less: str
    more: str
    tracks: tuple[GroupTrack, ...]
    verdict: str
    differ: bool


@dataclass(frozen=True)
class ShownEffects:
    """Effects in one language."""

    id: str
    made_on: str
    question: str | None
    epsilon: str
    factors: tuple[FactorTracks, ...]
    """Those in which groups differ first, then the clearest."""
    notes: tuple[str, ...]


def newest_of_each(all_of_a_poll: Sequence[StoredEffects]) -> list[StoredEffects]:
    """Return the newest effects of everybody, and of each question, given all of a poll, the newest first."""
    found: dict[str | None, StoredEffects] = {}
    for stored in all_of_a_poll:
        found.setdefault(stored.read().effects.question, stored)
    return sorted(found.values(), key=lambda one: one.read().effects.question or "")


def read_effects(stored: StoredEffects, poll: HostedPoll, words: Words) -> ShownEffects:
    """Put effects into words of a language."""
    release = stored.read()
    effects = effects_in_words(release.effects, poll, words.language)
    said = study_words(poll.study, words.language, poll.translations)
    rows = []
    for factor in poll.study.factors:
        title, less, more = spoken_factor(factor.name, words, said)
        tracks = tuple(
            GroupTrack(one_line(group.label), _respect(effect, title, less, more, words))
            for group in effects.groups
            for effect in group.effects
            if effect.factor == factor.name
        )
        verdict, differ = _verdict(effects, factor.name, tracks, words)
        rows.append(FactorTracks(title, less, more, tracks, verdict, differ))
    rows.sort(key=lambda row: (not row.differ, -max(abs(one.respect.at - 0.5) for one in row.tracks)))
    guarantee = release.guarantee
    least = f"{guarantee.smallest_epsilon} – " if guarantee.personal else ""
    return ShownEffects(
        id=stored.id,
        made_on=str(stored.made_on),
        question=None if effects.question is None else one_line(effects.question),
        epsilon=f"{least}{guarantee.epsilon}",
        factors=tuple(rows),
        notes=tuple(words(key) for key in _notes(release.facts)),
    )


def _notes(facts: Mapping[str, object]) -> list[str]:
    kinds = {
        "groups_reported_at": "groups_noisy",
        "groups_protected": "groups_secret",
        "groups_not_protected": "groups_known",
    }
    return [word for fact, word in kinds.items() if fact in facts]


def _respect(effect: Effect, title: str, less: str, more: str, words: Words) -> Respect:
    """Turn an effect, from -1 to 1, into the share of choices that went to the side with more."""
    at, low, high = ((1 + value) / 2 for value in (effect.estimate, effect.low, effect.high))
    low = min(low, at)
    high = max(high, at)
    if not effect.known:
        return Respect(title, less, more, False, 0.5, 0.0, 1.0, words("row_unknown"), "")
    pole = more
    shown = (at, low, high)
    if at < 0.5:
        pole = less
        shown = (1 - at, 1 - high, 1 - low)
    ends = {"low": math.floor(100 * shown[1]), "high": math.ceil(100 * shown[2])}
    if shown[1] <= 0.5:
        return Respect(title, less, more, True, at, low, high, words("effects_open", more=pole, **ends), "")
    sentence = words("effects_row", share=round(100 * shown[0]), more=pole)
    return Respect(title, less, more, True, at, low, high, sentence, words("row_range", **ends))


def _verdict(effects: Effects, factor: str, tracks: Sequence[GroupTrack], words: Words) -> tuple[str, bool]:
    """Say whether groups differ in a factor, agree on a side, or neither can be told."""
    if len(tracks) < 2:
        return "", False
    told = [one for one in effects.differences if one.factor == factor and one.told_apart]
    if told:
        pairs = [
            words("groups_pair", one=one.group, other=one.other, points=round(50 * abs(one.estimate))) for one in told
        ]
        return words("groups_differ", pairs="; ".join(pairs)), True
    respects = [one.respect for one in tracks]
    for pole, agreed in (
        (respects[0].more, all(one.clear and one.low > 0.5 for one in respects)),
        (respects[0].less, all(one.clear and one.high < 0.5 for one in respects)),
    ):
        if agreed:
            return words("groups_agree", pole=pole), False
    return words("groups_same"), False
