"""Attacks on what surrounds the mechanisms: whom a ledger charges for a release, and how an import reads a file.

An attack is a series of random cases from a seed. Each is judged by an oracle that shares no code with what is judged:
a dictionary of what every person has lost, and a plain reader of CSV (``dirty_csv``). Its findings are facts, so there
are no false alarms. Parts with a deliberate mistake must be caught. A lying server attacks the Python client
(``client_attack``) and the voter's page in a browser (``page_attack``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from crowdveil.audit.dirty_csv import (
    ImportOutcome,
    dirty_file,
    import_file,
    import_in_silence,
    import_line_by_line,
    import_plainly,
)
from crowdveil.ballots.ballot_file import open_ballots, read_ballots, write_ballots
from crowdveil.ballots.ballots import Ballots, BallotSource, join_batches
from crowdveil.errors import BudgetExceeded, CrowdveilError
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.privacy.guarantee import paradigm
from crowdveil.privacy.ledger.entries import Charge, ChargeableLedger, Crowd, PostedCharge
from crowdveil.privacy.ledger.ledger import Ledger
from crowdveil.privacy.ledger.people import key_path
from crowdveil.publish.release import charged_release
from crowdveil.publish.request import Request
from crowdveil.study.bundled import load_study

PEOPLE = ("ann", "bob", "cleo", "dan", "eve", "fay")
BUDGET = 10
"""The most that anybody may lose, in tenths."""
HISTORIES = 40
STEPS = 15
FILES = 100
MOST_FINDINGS = 5
"""Number of findings after which an attack ends."""


@dataclass(frozen=True)
class AttackResult:
    """The result of one attack."""

    attack: str
    mistake: str | None
    """The deliberate mistake in what was attacked; None for our own parts."""
    cases: int
    findings: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing was found, or, for a mistake, something was."""
        return bool(self.findings) == (self.mistake is not None)

    def as_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return {
            "attack": self.attack,
            "mistake": self.mistake,
            "cases": self.cases,
            "findings": list(self.findings),
            "passed": self.passed,
        }


@dataclass(frozen=True)
class DisguisedCrowd:
    """A crowd as it is submitted for a release, and the truth about it."""

    manner: str
    source: Callable[[], BallotSource]
    people: tuple[str, ...]
    """The owners of the ballots, one name per ballot."""
    hidden: bool = False
    """Whether the ballots do not reveal who these people are."""
    forbidden: bool = False
    """Whether the crowd must be refused, whatever was spent."""
    keyless: bool = False
    """Whether the ledger's key is missing meanwhile."""

    @property
    def suspects(self) -> tuple[str, ...]:
        """The people who may be in the crowd, as far as a ledger can know."""
        return PEOPLE if self.hidden or self.keyless else self.people


class FingerprintLedger:
    """A ledger that identifies crowds by the bytes of a file: a deliberate mistake."""

    delta = None

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def charge(self, charge: Charge) -> PostedCharge:
        """Charge a crowd that overlaps with no other, as long as no byte changes."""
        digest = blake2b(charge.dataset.encode(), digest_size=16).digest()
        return self._ledger.charge(replace(charge, crowd=Crowd(charge.crowd.study, charge.crowd.voters, digest)))


class ForgetfulLedger(FingerprintLedger):
    """A ledger that takes crowds without names for people it has never met: a deliberate mistake."""

    def charge(self, charge: Charge) -> PostedCharge:
        """Charge named crowds as they are."""
        return self._ledger.charge(charge) if charge.crowd.digests is not None else super().charge(charge)


def open_by_position(folder: Path) -> BallotSource:
    """Open a folder as if every ballot came from a different voter: a deliberate mistake."""
    shards = [read_ballots(path) for path in sorted(folder.glob("*.parquet"))]
    joined = join_batches(shards[0].study, [replace(shard, names=None) for shard in shards])
    return replace(joined, names=pa.array([str(position) for position in range(joined.voters)]))


Findings = Iterator[str | None]
"""A finding for each case, or None."""


def crowds_against_ledger(
    seed: int,
    wrap: Callable[[Ledger], ChargeableLedger] = lambda ledger: ledger,
    open_folder: Callable[[Path], BallotSource] = open_ballots,
) -> Findings:
    """Request releases about crowds of a few people, in various disguises, and track what each person lost.

    ``lost`` is what a person really lost. ``charged`` is what a ledger must assume: a crowd without names may contain
    anybody. It is a finding if somebody loses more than the budget, or if a release is refused without a reason.
    """
    for history in range(HISTORIES):
        random = Random(f"{seed} {history}")
        with TemporaryDirectory() as folder:
            ledger = Ledger.create(Path(folder) / "ledger", BUDGET / 10)
            # Everybody has a name in the first study: nobody could recognise an unnamed voter in another study.
            charged_release(_ballots(random, PEOPLE), Request(paradigm("vlcp"), Epsilon(1 / 10)), ledger)
            lost = Counter(PEOPLE)
            charged = Counter(PEOPLE)
            for step in range(STEPS):
                crowd = _disguised_crowd(random, Path(folder) / f"step {step}", open_folder)
                tenths = random.randint(1, 5)
                request = Request(paradigm(random.choice(("vlcp", "rlcp", "alcp"))), Epsilon(tenths / 10))
                where = f"history {history}, step {step}: {crowd.manner}"
                try:
                    with _key_away(ledger.path, crowd.keyless):
                        charged_release(crowd.source(), request, wrap(ledger))
                except BudgetExceeded:
                    needless = max(charged[name] for name in crowd.suspects) + tenths <= BUDGET
                    if crowd.forbidden:
                        yield f"{where}: refused for want of budget only"
                    else:
                        yield f"{where}: refused though everybody has {tenths / 10} left" if needless else None
                    continue
                except CrowdveilError as error:
                    yield None if crowd.forbidden else f"{where}: refused: {error}"
                    continue
                for name in crowd.people:
                    lost[name] += tenths
                for name in crowd.suspects:
                    charged[name] += tenths
                name, most = lost.most_common(1)[0]
                if most > BUDGET:
                    yield f"{where}: {name} has lost {most / 10} of {BUDGET / 10}"
                    break
                yield f"{where}: released, but must not be" if crowd.forbidden else None


def dirty_files_against_import(seed: int, read: Callable[[Path], ImportOutcome] = import_file) -> Findings:
    """Import files as people write them, and compare with a reader that shares no code with the import."""
    random = Random(seed)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "answers.csv"
        for number in range(FILES):
            path.write_bytes(dirty_file(random))
            expected = import_plainly(path)
            try:
                found = read(path)
            except CrowdveilError as error:
                yield f"file {number}: refused as a whole: {error}"
                continue
            yield None if found == expected else f"file {number}: {_difference(found, expected)}"


@dataclass(frozen=True)
class Attack:
    """An attack on one of our parts, or on a copy with a mistake."""

    name: str
    mistake: str | None
    cases: Callable[[int], Findings]

    def run(self, seed: int) -> AttackResult:
        """Try case after case until there are enough findings; for a mistake, one is enough."""
        cases = 0
        findings = list[str]()
        enough = MOST_FINDINGS if self.mistake is None else 1
        for finding in self.cases(seed):
            cases += 1
            if finding is not None:
                findings.append(finding)
            if len(findings) == enough:
                break
        return AttackResult(self.name, self.mistake, cases, tuple(findings))


_CROWDS = "crowds against the ledger"
_FILES = "dirty files against the import"
ATTACKS = (
    Attack(_CROWDS, None, crowds_against_ledger),
    Attack(_FILES, None, dirty_files_against_import),
    Attack(_CROWDS, "a ledger that goes by the bytes", lambda seed: crowds_against_ledger(seed, FingerprintLedger)),
    Attack(_CROWDS, "a ledger that forgets unnamed crowds", lambda seed: crowds_against_ledger(seed, ForgetfulLedger)),
    Attack(
        _CROWDS,
        "a folder that takes ballots for voters",
        lambda seed: crowds_against_ledger(seed, open_folder=open_by_position),
    ),
    Attack(_FILES, "every line break ends a row", lambda seed: dirty_files_against_import(seed, import_line_by_line)),
    Attack(_FILES, "refused rows are not told", lambda seed: dirty_files_against_import(seed, import_in_silence)),
)


class Mutant(Protocol):
    """A copy of one of our parts with a mistake."""

    @property
    def mistake(self) -> str:
        """The mistake, in words."""


M = TypeVar("M", bound=Mutant)


def attacks(name: str, cases: Callable[[M | None], Findings], mutants: Sequence[M]) -> tuple[Attack, ...]:
    """List the attacks on one of our parts as it is, and on copies with a mistake."""

    def attack(mutant: M | None) -> Attack:
        return Attack(name, None if mutant is None else mutant.mistake, lambda seed: cases(mutant))

    return tuple(attack(mutant) for mutant in (None, *mutants))


CLIENT = "a lying server before the client"
"""The attack that needs the service (``client_attack``)."""
PAGE = "a lying server before the page"
"""The attack that needs a browser, too (``page_attack``)."""


def run_attacks(
    seed: int, attacks: Sequence[Attack], tell: Callable[[int], None] = lambda done: None
) -> tuple[AttackResult, ...]:
    """Run these attacks; ``tell`` is called after each."""
    tests = list[AttackResult]()
    for attack in attacks:
        tests.append(attack.run(seed))
        tell(1)
    return tuple(tests)


def _ballots(random: Random, names: Sequence[str], study_name: str = "synthetic-2") -> Ballots:
    """Make up records for these people: different ones each time, as in a later wave."""
    study = load_study(study_name)
    whose = [name for name in names for _ in range(random.randint(1, 2))]
    left, right = ([[random.uniform(-1, 1) for _ in study.features] for _ in whose] for _ in range(2))
    return Ballots.from_arrays(study, whose, left, right, [random.choice((1, -1)) for _ in whose])


def _disguised_crowd(random: Random, folder: Path, open_folder: Callable[[Path], BallotSource]) -> DisguisedCrowd:
    """Choose some people, and a way to submit their ballots."""
    people = tuple(random.sample(PEOPLE, random.randint(2, len(PEOPLE))))
    ballots = _ballots(random, people)

    def shards(*parts: Ballots) -> Callable[[], BallotSource]:
        folder.mkdir()
        for number, part in enumerate(parts):
            write_ballots(folder / f"{number}.parquet", part.study, [part], {})
        return lambda: open_folder(folder)

    def in_memory(given: Ballots) -> Callable[[], BallotSource]:
        return lambda: given

    # Every manner but the first must leave the budget unaffected, or be refused.
    manners: tuple[Callable[[], DisguisedCrowd], ...] = (
        lambda: DisguisedCrowd("as they are", in_memory(ballots), people),
        lambda: DisguisedCrowd(
            "another title",
            in_memory(replace(ballots, study=replace(ballots.study, title=f"Title {random.random()}"))),
            people,
        ),
        lambda: DisguisedCrowd("in another study", in_memory(_ballots(random, people, "synthetic-3")), people),
        lambda: DisguisedCrowd("digests for names", in_memory(ballots.with_digests()), people),
        lambda: DisguisedCrowd("without names", in_memory(replace(ballots, names=None)), people, hidden=True),
        lambda: DisguisedCrowd("without the ledger's key", in_memory(ballots), people, keyless=True),
        lambda: DisguisedCrowd("a folder", shards(ballots[:1], ballots[1:].with_digests()), people),
        lambda: DisguisedCrowd("a folder with all voters twice", shards(ballots, ballots), people * 2, forbidden=True),
        lambda: DisguisedCrowd(
            "a folder with a voter twice, once as a digest",
            shards(ballots, ballots[:1].with_digests()),
            (*people, people[0]),
            forbidden=True,
        ),
        lambda: DisguisedCrowd(
            "a folder with names and without",
            shards(ballots, replace(ballots[:1], names=None)),
            (*people, people[0]),
            forbidden=True,
        ),
        lambda: DisguisedCrowd(
            "a voter twice",
            in_memory(join_batches(ballots.study, [ballots, ballots[:1]])),
            (*people, people[0]),
            forbidden=True,
        ),
        lambda: DisguisedCrowd(
            "selected by their choices", in_memory(ballots.filter(lambda b: b.counts >= 1)), people, forbidden=True
        ),
    )
    return random.choice(manners)()


@contextmanager
def _key_away(ledger: Path, away: bool) -> Iterator[None]:
    """Move a ledger's key elsewhere during the block."""
    key = key_path(ledger)
    hidden = key.with_suffix(".away")
    if away:
        key.rename(hidden)
    try:
        yield
    finally:
        if away:
            hidden.rename(key)


def _difference(found: ImportOutcome, expected: ImportOutcome) -> str:
    """Describe in a few words where two readers disagree."""

    def told(outcome: ImportOutcome) -> str:
        records = sum(map(len, outcome.records.values()))
        return f"{len(outcome.records)} voters, {records} records, {len(outcome.refused)} rows refused"

    return f"imported as {told(found)}; a plain reader finds {told(expected)}"
