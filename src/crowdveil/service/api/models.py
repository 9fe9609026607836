"""The API's requests and responses, as OpenAPI describes them. Anything else is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from crowdveil.privacy.guarantee import Place, Unit
from crowdveil.protocol.decisions import ALTERNATIVES_SCHEMA
from crowdveil.protocol.polls import EntryRule, PollState, PollSummary
from crowdveil.protocol.questions import QuestionKind
from crowdveil.protocol.submission import VoterStep

MICRO = Field(description="In millionths.")
BY_VALUE = Field(strict=False)
"""Field for an enumeration that is given by its values."""
Hex64 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Whole = Annotated[int, Field(ge=-(2**63) + 1, le=2**63 - 1)]


class Model(BaseModel):
    """A strict model: it converts nothing and refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PollList(Model):
    """All polls."""

    polls: list[PollSummary]


class LevelOfPrivacy(Model):
    """A level of privacy that a poll offers."""

    name: str
    epsilon_micro: int = MICRO
    size: int | None = Field(description="The number of coordinates, signs, bits or choices in a report; null: all.")


class Method(Model):
    """The numbers with which a device makes a report. Its privacy does not depend on them."""

    norm_bound: float
    record_bound: float
    axes: list[list[float]] | None = Field(description="One row per feature, one column per axis.")
    units: list[float] | None = Field(description="Integer steps per model unit of each feature.")
    clip: float | None
    records: int | None = Field(description="The most records that are scored, drawn at random; null: all.")


class FactorStep(Model):
    """One respect in which alternatives differ."""

    name: str
    step: list[float] = Field(description="The difference in each feature from its negative pole to its positive one.")


class OptionText(Model):
    """One answer to an about-you question."""

    id: str
    text: dict[str, str] = Field(description="By language.")


class QuestionText(Model):
    """An about-you question."""

    id: str
    kind: Annotated[QuestionKind, BY_VALUE]
    text: dict[str, str] = Field(description="By language.")
    required: bool
    options: list[OptionText] = Field(description="For kinds single and several.")
    low: int | None = Field(description="For kinds number and scale, like high.")
    high: int | None
    step: int = Field(description="The size of a range of numbers; only a number's range leaves the device.")
    ends: list[dict[str, str]] | None = Field(description="The words of a scale's lowest and highest point.")
    expected: str | int | list[str] | None = Field(
        description="The answer that passes an attention check; only in distributed polls, where the device judges it."
    )


class AttentionChecks(Model):
    """Notice to voters about attention checks."""

    checks: int
    left_out: bool = Field(description="Whether releases leave out voters who failed one.")


class Budget(Model):
    """The cap on all releases of a central poll together."""

    epsilon_micro: int = MICRO


class RelayDescription(Model):
    """The relay that passes on the reports, with the host's key and the promise behind the relay."""

    configuration: dict[str, Any] = Field(description="The key configuration; see docs/file-formats.md.")
    fingerprint: Hex64
    quota: int | None
    opens_on: Day | None
    promise: dict[str, Any] = Field(description="The promise for the smallest batch that is ever handed over.")


class PollDescription(Model):
    """The public description of a poll."""

    id: str
    state: Annotated[PollState, BY_VALUE]
    study: dict[str, Any] = Field(description="The study, as in its file.")
    study_fingerprint: Hex64
    languages: list[str]
    paradigm: Literal["vlcp", "rlcp", "vldp", "rldp", "alcp", "aldp"]
    unit: Annotated[Unit, BY_VALUE]
    place: Annotated[Place, BY_VALUE]
    mechanism: str
    levels: list[LevelOfPrivacy]
    method: Method
    factors: list[FactorStep] = Field(description="The factors that the study names, or else its features.")
    scene: Literal["road", "cards"]
    entry: Annotated[EntryRule, BY_VALUE]
    questions: list[QuestionText]
    about_epsilon_micro: int | None
    attention: AttentionChecks | None
    budget: Budget | None
    contact: str | None
    consent: dict[str, str] | None = Field(description="By language.")
    minimum_age: int | None = Field(description="The age that voters must declare to have reached.")
    closes_on: Day | None
    destroy_on: Day | None = Field(description="Central polls: the day on which the exact answers are destroyed.")
    pilot: bool = Field(description="Whether the poll is being tried out, so that submissions never count.")
    return_url: str | None
    release: str | None = Field(description="The id of the release that decisions use.")
    relay: RelayDescription | None


class BatchAcknowledgement(Model):
    """The host's confirmation that a batch is stored: the relay may erase it."""

    batch: str
    accepted: int
    refused: dict[str, int] = Field(description="The number of refused reports for each reason.")


class WordsOfFeature(Model):
    """A feature's name, and its phrases by value."""

    label: str
    words: dict[str, str] | None


class WordsOfFactor(Model):
    """A factor's title, and its negative and positive pole."""

    title: str
    poles: list[str]


class Words(Model):
    """A study's words in one language."""

    language: str
    direction: Literal["ltr", "rtl"]
    title: str
    question: str
    indifference: str | None = Field(None, description="The third answer; null if voters have to choose.")
    features: dict[str, WordsOfFeature]
    factors: dict[str, WordsOfFactor] = Field(description="Empty if the study names none: use its features.")
    parts: list[str]


class DrawnDilemma(Model):
    """Two alternatives, each a value for every feature in the study's order."""

    left: list[float]
    right: list[float]


class Session(Model):
    """One voter's dilemmas, drawn anew at each request and not stored."""

    dilemmas: list[DrawnDilemma]


class StepBody(Model):
    """A step that somebody has reached: half of the dilemmas answered, all of them, everything ready to be sent."""

    step: Annotated[VoterStep, BY_VALUE]


class ReportBody(Model):
    """A voter's report. The fields after the epsilon depend on the mechanism; see docs/file-formats.md."""

    format: Literal["crowdveil report 1"]
    study: Hex64
    mechanism: str
    epsilon_micro: int = MICRO
    values: list[Whole] | None = None
    records: int | None = None
    coordinates: list[int] | None = None
    dilemmas: list[list[float]] | None = None
    choices: list[Literal[1, 0, -1]] | None = None
    preference: dict[str, Any] | None = None
    indifferent: Literal[1, -1] | None = None
    alike: Literal[1, -1] | None = None
    kind: Literal["direction", "length"] | None = None
    axes: list[int] | None = None
    bits: list[Literal[1, -1]] | None = None
    about: dict[str, str | int | dict[str, bool]] | None = None


class BallotRecord(Model):
    """A dilemma as it was shown, and the chosen side, or ``neither`` if the study allows it."""

    left: list[float]
    right: list[float]
    chosen: Literal["left", "right", "neither"]
    repeats: int | None = Field(None, description="Of a second answer: the index of the record that it repeats.")


class BallotBody(Model):
    """A voter's records for a central poll."""

    format: Literal["crowdveil ballot 1"]
    study: Hex64
    records: Annotated[list[BallotRecord], Field(min_length=1)]
    about: dict[str, str | int | list[str]] = {}


class Participation(Model):
    """Whether a ballot token has been used."""

    status: Literal["unused", "stored"]


class ReleaseSummary(Model):
    """A release in a list of releases."""

    id: Hex64
    poll: str
    study: str
    title: str
    paradigm: str
    mechanism: str
    epsilon: float
    voters: int
    made_on: Day
    current: bool = Field(description="Whether the decisions of its poll use it.")


class ReleaseList(Model):
    """Releases, newest first."""

    releases: list[ReleaseSummary]


class EffectsSummary(Model):
    """Effects of a poll, for everybody or by a question about voters."""

    id: Hex64
    poll: str
    made_on: str
    question: str | None = Field(description="The id of the question that voters are grouped by; null: everybody.")
    groups: list[str]
    voters: int
    paradigm: str
    epsilon: float


class EffectsList(Model):
    """Effects, newest first."""

    effects: list[EffectsSummary]


class DilemmaBody(Model):
    """Two or more alternatives, in any of the forms of a dilemma."""

    alternatives: Annotated[Any, WithJsonSchema(ALTERNATIVES_SCHEMA)]


Certainty = Annotated[float, Field(ge=0.5, lt=1, description="Below this certainty the answer is: too close to call.")]


class DecisionRequest(DilemmaBody):
    """A dilemma to decide."""

    certainty: Certainty = 0.9


class BatchRequest(Model):
    """Many dilemmas to decide."""

    dilemmas: Annotated[list[DilemmaBody], Field(min_length=1, max_length=1000)]
    certainty: Certainty = 0.9


class RankedAlternativeBody(Model):
    """An alternative in the ranking."""

    name: str
    score: float
    description: str


class DecisionGuarantee(Model):
    """The release's promise to its voters."""

    paradigm: str
    epsilon: float
    delta: float | None = None


CHOICE = (
    'The name of the chosen alternative; "toss a coin" if most voters would treat both equally, in a study that '
    "allows this answer; null if it is too close to call."
)
PROBABILITIES = (
    "For two alternatives in a study that allows a third answer: the shares of voters who choose each of them, and "
    '"toss a coin" for those who would toss one. Null otherwise.'
)
TOSS_A_COIN = "Whether tossing a coin is the most common of the three answers. Null if there are only two."
PROBABILITY = (
    "For two alternatives: the share of voters who prefer the first-ranked one, given all that is unknown. "
    "Null for more than two, and for a society as the paper defines it."
)
CERTAINTY = (
    "About the voters themselves: whatever they prefer, a wrong choice with a certainty of at least c comes out with "
    "probability at most 1 - c, over the privacy noise."
)
POPULATION_CERTAINTY = (
    "The same about the people from whom the voters were drawn; 0 of fewer than 11 voters. Null for a paper's society."
)


class DecisionBody(Model):
    """The crowd's choice, how many voters agree with it, and how certain it is."""

    choice: Annotated[str | None, Field(description=CHOICE)]
    too_close_to_call: bool
    reason: str
    probability: Annotated[float | None, Field(description=PROBABILITY)]
    probabilities: Annotated[dict[str, float] | None, Field(description=PROBABILITIES)] = None
    toss_a_coin: Annotated[bool | None, Field(description=TOSS_A_COIN)] = None
    certainty: Annotated[float, Field(description=CERTAINTY)]
    population_certainty: Annotated[float | None, Field(description=POPULATION_CERTAINTY)]
    threshold: float
    ranking: list[RankedAlternativeBody]
    guarantee: DecisionGuarantee
    release: Hex64


class BatchAnswer(Model):
    """The decisions, in the order of the dilemmas."""

    decisions: list[DecisionBody]


class Health(Model):
    """Whether the service and its database work."""

    status: Literal["ok", "unavailable"]
    database: Literal["ok", "does-not-answer"]
