"""A poll's public result: what the crowd prefers along each factor, how groups differ, and what was promised.

Everything here is computed from the public files of releases and effects, and from nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from crowdveil.arrays import FloatArray
from crowdveil.decision import stated_margins, three_shares
from crowdveil.effect_release import Effect, Effects
from crowdveil.pages.feature_estimates import decimals, feature_estimates, one_line, signed
from crowdveil.pages.plain_words import attacker_odds
from crowdveil.privacy.guarantee import Place, Unit
from crowdveil.privacy.mechanisms.group_mechanism import OTHERS
from crowdveil.protocol.polls import Poll
from crowdveil.protocol.questions import QuestionKind, Texts, host_words
from crowdveil.releases import Release
from crowdveil.service.poll import HostedPoll
from crowdveil.service.public.words import PageWords
from crowdveil.service.store.releases import StoredEffects
from crowdveil.study.translations import Translation
from crowdveil.study.translations import words as study_words

_PROMISES = {Unit.VOTER: "promise_voter", Unit.RECORD: "promise_record", Unit.CHOICE: "promise_choice"}
_TRUSTED = {Place.DISTRIBUTED: "trust_devices", Place.CENTRAL: "trust_host"}


@dataclass(frozen=True)
class FactorLeaning:
    """A factor in which outcomes differ, and which way the crowd leans in it. Places run from 0 (less) to 1 (more).

    Where people may toss a coin, whoever would toss one counts half for each side.
    """

    title: str
    less: str
    more: str
    known: bool
    at: float
    low: float
    high: float
    sentence: str
    range: str
    """The range that the band leaves open, in words; empty if the sentence says it."""

    @property
    def clear(self) -> bool:
        """Whether the band lies on one side of the middle."""
        return self.known and (self.low > 0.5 or self.high < 0.5)


@dataclass(frozen=True)
class FeatureRow:
    """One feature, with only the significant digits."""

    label: str
    value: str
    error_bar: str
    """The error bar, or that nothing is known."""
    lean: str
    known: bool


@dataclass(frozen=True)
class Result:
    """A release in one language."""

    title: str
    question: str
    shares: bool
    """Whether places are shares of people. (They are not for a society as the paper defines it.)"""
    coins: bool
    """Whether people may toss a coin."""
    leanings: tuple[FactorLeaning, ...]
    """The factors with their leanings, the clearest first."""
    features: tuple[FeatureRow, ...]
    alike: str | None
    """A sentence on how many people answer alike, if one dilemma was asked twice."""
    promises: tuple[str, ...]

    @property
    def summary(self) -> str:
        """The three clearest findings in one line, for previews of the page's address."""
        clear = [leaning.sentence for leaning in self.leanings if leaning.clear][:3]
        return ". ".join(clear) + "." if clear else self.question


def read_result(release: Release, words: PageWords, added: Sequence[Translation] = ()) -> Result:
    """Describe a release in words of a language."""
    said = study_words(release.study, words.language, added)
    leanings = sorted(_leanings(release, words, said), key=lambda row: (not row.known, -abs(row.at - 0.5)))
    return Result(
        title=one_line(said["title"]),
        question=one_line(said["question"]),
        shares=release.unknown is not None,
        coins=_has_coins(release),
        leanings=tuple(leanings),
        features=_features(release, words, said),
        alike=_alike(release, words),
        promises=tuple(_promises(release, words)),
    )


def _leanings(release: Release, words: PageWords, said: dict[str, dict[str, dict[str, str]]]) -> list[FactorLeaning]:
    study = release.study
    lengths = (study.pole_steps @ study.factor_matrix).diagonal()
    margins = np.asarray(stated_margins(release, study.pole_steps), float)
    ends = release.factor_intervals * lengths[:, None]
    if release.unknown is not None:
        places, bands = ndtr(margins), ndtr(ends)
    else:
        widest = float(np.max(np.abs(np.hstack([margins[:, None], ends])))) or 1.0
        places, bands = 0.5 + margins / widest / 2, 0.5 + ends / widest / 2
    found = []
    for k, factor in enumerate(study.factors):
        title, less, more = spoken_factor(factor.name, words, said)
        if _has_coins(release) and release.known[k]:
            found.append(_of_three(release, words, (title, less, more), study.pole_steps[k], ends[k]))
            continue
        at = float(places[k])
        low = float(min(bands[k, 0], places[k]))
        high = float(max(bands[k, 1], places[k]))
        known = bool(release.known[k])
        values = (float(margins[k]), float(ends[k, 0]), float(ends[k, 1]))
        sentence, band = _sentence(release, words, (less, more), (at, low, high), values, known)
        found.append(FactorLeaning(title, less, more, known, at, low, high, sentence, band))
    return found


def _has_coins(release: Release) -> bool:
    return release.indifference is not None and release.unknown is not None


def _of_three(
    release: Release, words: PageWords, spoken: tuple[str, str, str], step: FloatArray, ends: FloatArray
) -> FactorLeaning:
    """Return the leaning in a factor where people may toss a coin: the shares are those that decisions state."""
    assert release.indifference is not None
    title, less, more = spoken
    stated = three_shares(release, step)
    bounds = [stated, *(release.indifference.shares(float(end), 0.0) for end in ends)]
    places = [(1 + one - other) / 2 for one, other, _ in bounds]
    side = 0 if places[0] >= 0.5 else 1
    pole, opposite = (more, less) if side == 0 else (less, more)
    shares = [each[side] for each in bounds]
    within = {"low": math.floor(100 * min(shares)), "high": math.ceil(100 * max(shares))}
    found = FactorLeaning(
        title, less, more, True, places[0], min(places), max(places), words("row_open", more=pole, **within), ""
    )
    if not found.clear:
        return found
    share, other, coin = (round(100 * each) for each in (stated[side], stated[1 - side], stated[2]))
    sentence = words("row_three", share=share, more=pole, other=other, less=opposite, coin=coin)
    return replace(found, sentence=sentence, range=words("row_range", **within))


def spoken_factor(name: str, words: PageWords, said: dict[str, dict[str, dict[str, str]]]) -> tuple[str, str, str]:
    """Return the title and the two poles of a factor in a language."""
    if name in said["factors"]:
        spoken = said["factors"][name]
        less, more = map(one_line, spoken["poles"])
        return one_line(spoken["title"]), less, more
    title = one_line(said["features"][name]["label"])
    return title, words("less", label=title), words("more", label=title)


def _sentence(
    release: Release,
    words: PageWords,
    poles: tuple[str, str],
    places: tuple[float, float, float],
    values: tuple[float, float, float],
    known: bool,
) -> tuple[str, str]:
    """Return a sentence about one factor, from the majority's side, and one about the range that is left open."""
    if not known:
        return words("row_unknown"), ""
    if release.unknown is None:
        value, low, high = (signed(number, 2) for number in values)
        return words("row_value", value=value, low=low, high=high), ""
    less, more = poles
    at, low_end, high_end = places
    if at < 0.5:
        less, more, at, low_end, high_end = more, less, 1 - at, 1 - high_end, 1 - low_end
    ends = {"low": math.floor(100 * low_end), "high": math.ceil(100 * high_end)}
    if low_end <= 0.5:
        return words("row_open", more=more, **ends), ""
    return words("row_share", share=round(100 * at), less=less, more=more), words("row_range", **ends)


def _features(release: Release, words: PageWords, said: dict[str, dict[str, dict[str, str]]]) -> tuple[FeatureRow, ...]:
    labels = [said["features"][feature.name]["label"] for feature in release.study.features]
    shown = feature_estimates(release, labels)
    places = decimals(shown)
    return tuple(
        FeatureRow(one.label, signed(one.value, places), one.bar_text(places, " … "), one.sign.value, known=True)
        if one.known
        else FeatureRow(one.label, "", words("row_unknown"), one.sign.value, known=False)
        for one in shown
    )


def _alike(release: Release, words: PageWords) -> str | None:
    found = release.reliability
    if found is None:
        return None
    ends = {"low": math.floor(100 * found.low), "high": math.ceil(100 * found.high)}
    return words("asked_twice", share=round(100 * found.share), **ends)


def _promises(release: Release, words: PageWords) -> list[str]:
    guarantee = release.guarantee
    right = math.ceil(100 * attacker_odds(guarantee.epsilon.value))
    said = [
        words(_PROMISES[guarantee.paradigm.unit], voters=words.whole(guarantee.voters)),
        words(_TRUSTED[guarantee.paradigm.place]),
        words("odds", right=right),
    ]
    if guarantee.personal:
        said.append(words("odds_personal", least=guarantee.smallest_epsilon, most=guarantee.epsilon))
    if (relayed := release.relayed) is not None:
        shown = f"{math.ceil(relayed.epsilon * 10_000) / 10_000:g}"
        honest = f"{100 * relayed.honest:g}"
        said.append(words("relay_everybody", epsilon=shown, delta=f"{relayed.delta:g}", honest=honest))
        said += [words("relay_both", epsilon=relayed.local), words("relay_alone")]
    if "selected_by" in release.facts:  # A poll selects by attention checks, and by nothing else.
        said.append(words("left_out"))
    return [*said, words("limits")]


@dataclass(frozen=True)
class GroupTrack:
    """One group's place between the poles of a factor."""

    label: str
    """The group's name; empty for everybody."""
    leaning: FactorLeaning


@dataclass(frozen=True)
class FactorTracks:
    """A factor with a track for each group, and a sentence on whether they differ."""

    title: str
    less: str
    more: str
    tracks: tuple[GroupTrack, ...]
    verdict: str
    differ: bool


@dataclass(frozen=True)
class EffectsInWords:
    """Effects in one language."""

    id: str
    made_on: str
    question: str | None
    epsilon: str
    factors: tuple[FactorTracks, ...]
    """The factors: first those in which groups differ, then the clearest."""
    notes: tuple[str, ...]


def newest_of_each(all_of_a_poll: Sequence[StoredEffects]) -> list[StoredEffects]:
    """Return the newest effects of everybody and of each question, given all effects of a poll, newest first."""
    found: dict[str | None, StoredEffects] = {}
    for stored in all_of_a_poll:
        found.setdefault(stored.read().effects.question, stored)
    return sorted(found.values(), key=lambda one: one.read().effects.question or "")


def read_effects(stored: StoredEffects, poll: HostedPoll, words: PageWords) -> EffectsInWords:
    """Describe effects in words of a language."""
    release = stored.read()
    effects = effects_in_words(release.effects, poll, words)
    said = study_words(poll.study, words.language, poll.translations)
    rows = []
    for factor in poll.study.factors:
        title, less, more = spoken_factor(factor.name, words, said)
        tracks = tuple(
            GroupTrack(one_line(group.label), _leaning(effect, title, less, more, words))
            for group in effects.groups
            for effect in group.effects
            if effect.factor == factor.name
        )
        verdict, differ = _verdict(effects, factor.name, tracks, words)
        rows.append(FactorTracks(title, less, more, tracks, verdict, differ))
    rows.sort(key=lambda row: (not row.differ, -max(abs(one.leaning.at - 0.5) for one in row.tracks)))
    guarantee = release.guarantee
    least = f"{guarantee.smallest_epsilon} – " if guarantee.personal else ""
    return EffectsInWords(
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


def _leaning(effect: Effect, title: str, less: str, more: str, words: PageWords) -> FactorLeaning:
    """Convert an effect, from -1 to 1, to the share of choices for the side with more."""
    at, low, high = ((1 + value) / 2 for value in (effect.estimate, effect.low, effect.high))
    low = min(low, at)
    high = max(high, at)
    if not effect.known:
        return FactorLeaning(title, less, more, False, 0.5, 0.0, 1.0, words("row_unknown"), "")
    pole = more
    shown = (at, low, high)
    if at < 0.5:
        pole = less
        shown = (1 - at, 1 - high, 1 - low)
    ends = {"low": math.floor(100 * shown[1]), "high": math.ceil(100 * shown[2])}
    if shown[1] <= 0.5:
        return FactorLeaning(title, less, more, True, at, low, high, words("effects_open", more=pole, **ends), "")
    sentence = words("effects_row", share=round(100 * shown[0]), more=pole)
    return FactorLeaning(title, less, more, True, at, low, high, sentence, words("row_range", **ends))


def _verdict(effects: Effects, factor: str, tracks: Sequence[GroupTrack], words: PageWords) -> tuple[str, bool]:
    """Return a sentence on whether groups differ in a factor, agree on a side, or neither is clear."""
    if len(tracks) < 2:
        return "", False
    told = [one for one in effects.differences if one.factor == factor and one.told_apart]
    if told:
        pairs = [
            words("groups_pair", one=one.group, other=one.other, points=round(50 * abs(one.estimate))) for one in told
        ]
        return words("groups_differ", pairs="; ".join(pairs)), True
    leanings = [one.leaning for one in tracks]
    for pole, agreed in (
        (leanings[0].more, all(one.clear and one.low > 0.5 for one in leanings)),
        (leanings[0].less, all(one.clear and one.high < 0.5 for one in leanings)),
    ):
        if agreed:
            return words("groups_agree", pole=pole), False
    return words("groups_same"), False


def effects_in_words(effects: Effects, poll: Poll, words: PageWords) -> Effects:
    """Return effects with the question and the groups in words of a language."""
    question = next((one for one in poll.questions if one.id == effects.question), None)
    if question is None:
        return effects
    said = {option.id: _spoken(option.text, words.language) for option in question.options}
    if len(set(said.values())) < len(said):
        said = {}
    ranges = question.kind is QuestionKind.NUMBER and question.step > 1

    def word(label: str) -> str:
        if label == OTHERS:
            return words("groups_others")
        low, _, high = label.partition(" to ")
        return words("groups_range", low=low, high=high) if ranges and high else said.get(label, label)

    return replace(
        effects,
        question=_spoken(question.text, words.language),
        groups=tuple(replace(one, label=word(one.label)) for one in effects.groups),
        differences=tuple(replace(one, group=word(one.group), other=word(one.other)) for one in effects.differences),
    )


def _spoken(texts: Texts, language: str) -> str:
    return texts.get(language) or host_words(texts)
