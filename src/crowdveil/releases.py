"""Releases that may be published: a parameter with its guarantee. Decisions read nothing else.

A published file is self-contained JSON that a person can read. A file that was edited by hand or truncated is refused.
(The checksum catches accidents; it is not a signature.)
"""

from __future__ import annotations

import hashlib
import html
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from crowdveil.arrays import BoolArray, FloatArray
from crowdveil.errors import CrowdveilError, as_pandas, check_flag, check_type, path_of, plural
from crowdveil.files import write_text
from crowdveil.privacy.guarantee import Guarantee
from crowdveil.privacy.noise.distribution import NoiseDistribution, noise_from_dict
from crowdveil.privacy.shuffling import RelayedPromise
from crowdveil.privacy.side_answers import Indifference, Reliability
from crowdveil.privacy.uncertainty import ERROR_BAR, Uncertainty, intervals
from crowdveil.study.plain_data import canonical_json, parse_json
from crowdveil.study.study import Study

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

    from crowdveil.figure import Plot


EFFECTS_FORMAT = "crowdveil effects 1"
"""Format of a file of effects (``effect_release``), from which nothing can be decided."""


class Publication(ABC):
    """Numbers that may be published, with their guarantee. Two are equal if their files would be the same."""

    guarantee: Guarantee
    mechanism: str
    sampler: str
    """Where the noise came from, in words."""
    exact: bool
    """False for floating-point noise, which is for experiments and protects nobody."""
    facts: Mapping[str, Any]
    ledger: Mapping[str, Any] | None
    """The id of the ledger that was charged, and the entry."""
    version: str
    on_save: Callable[[str], None] | None
    """Called with the digest once the file is durable, so that the ledger records the delivery."""

    @abstractmethod
    def content(self) -> dict[str, Any]:
        """Return the content of the file apart from the guarantee: format, study and numbers."""

    def as_dict(self) -> dict[str, Any]:
        """Return the plain data of the file, checksum included."""
        content = self.content()
        noise = {**content.get("noise", {}), "sampler": self.sampler, "exact": self.exact}
        content |= {
            "guarantee": self.guarantee.as_dict(),
            "mechanism": self.mechanism,
            "noise": noise,
            "facts": dict(self.facts),
            "ledger": None if self.ledger is None else dict(self.ledger),
            "crowdveil": self.version,
        }
        return {**content, "checksum": checksum(content)}

    @property
    def digest(self) -> str:
        """The checksum, which identifies this file."""
        return str(self.as_dict()["checksum"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Publication) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the file, whole or not at all."""
        data = self.as_dict()
        write_text(path_of(path), json.dumps(data, indent=2, ensure_ascii=False) + "\n")
        if self.on_save is not None:
            self.on_save(data["checksum"])


P = TypeVar("P", bound=Publication)


def read_publication(path: str | PathLike[str], what: str, from_dict: Callable[..., P], allow_experiment: bool) -> P:
    """Read and check a published file; ``what`` is its name in errors."""
    check_flag(allow_experiment, "allow_experiment")
    path = path_of(path, what)
    try:
        return from_dict(read_json(path), allow_experiment=allow_experiment)
    except CrowdveilError as error:
        raise CrowdveilError(f"{path}: {error}") from None


def publication_from_dict(
    data: Any, file_format: str, what: str, build: Callable[[Any, Study], P], allow_experiment: bool
) -> P:
    """Check the plain data of a published file, and build its content from them and their study."""
    checked_content(data, file_format)
    try:
        published = build(data, study_of(data))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise CrowdveilError(f"it is not a complete {what}: {type(error).__name__} {error}") from None
    if not published.exact and not allow_experiment:
        raise CrowdveilError(
            "it was made with floating-point noise, which protects nobody: it is for experiments only "
            "(to look at one, commands have --allow-experiment, and Python allow_experiment=True)"
        )
    return published


def publication_fields(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that every publication has, from the plain data of a file."""
    return {
        "guarantee": Guarantee.from_dict(data["guarantee"]),
        "mechanism": str(data["mechanism"]),
        "sampler": str(data["noise"]["sampler"]),
        "exact": data["noise"]["exact"] is True,
        "facts": data["facts"],
        "ledger": data["ledger"],
        "version": str(data["crowdveil"]),
    }


def study_of(data: Mapping[str, Any]) -> Study:
    """Return the study in the plain data of a file, and refuse it if its fingerprint is not the one stated there."""
    study = Study.from_dict(data["study"])
    if study.fingerprint != data["study_fingerprint"]:
        raise CrowdveilError("the study in it does not have the fingerprint that the file names")
    return study


def read_json(path: Path) -> Any:
    """Read the plain data of a published file."""
    if path.is_dir():
        raise CrowdveilError("it is a directory, not a release file")
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise CrowdveilError("there is no such release file: crowdveil release makes one, at --out") from None
    except OSError as error:
        raise CrowdveilError(f"cannot read the release file: {error.strerror or error}") from None
    if content.startswith(b"PAR1"):
        raise CrowdveilError(
            "it is a Parquet file, not a release (JSON): if it holds ballots, make a release of them with crowdveil "
            "release"
        )
    try:
        return parse_json(content.decode("utf-8-sig"))  # some editors write a byte-order mark
    except ValueError as error:
        if path.name.endswith((".csv", ".gz", ".tsv", ".txt")):
            raise CrowdveilError(
                "it is a table, not a release (JSON): make ballots of it with crowdveil import, and a release of them "
                "with crowdveil release"
            ) from None
        why = "" if isinstance(error, UnicodeDecodeError) else f" ({error})"
        raise CrowdveilError(f"it is not a release file: it is not JSON{why}") from None


def checked_content(data: Any, expected: str) -> None:
    """Refuse plain data of another format, or data that were changed after they were written."""
    found = data.get("format") if isinstance(data, dict) else type(data).__name__
    if found != expected and found == EFFECTS_FORMAT:
        raise CrowdveilError(
            "it holds effects, which decide nothing: make a release of preferences with crowdveil release"
        )
    if found != expected:
        raise CrowdveilError(f"not a release that this version reads: its format is {found!r}, expected {expected!r}")
    content = {key: value for key, value in data.items() if key != "checksum"}
    try:
        right = checksum(content)
    except ValueError:
        raise CrowdveilError("it holds numbers that are not finite: the release is damaged") from None
    if data.get("checksum") != right:
        raise CrowdveilError(
            "its checksum does not match: it was edited or damaged after it was made; get the original"
        )


def checksum(content: Mapping[str, Any]) -> str:
    """Return the checksum of a published file's content. It catches accidents; it is not a signature."""
    return hashlib.sha256(canonical_json(content).encode(errors="surrogatepass")).hexdigest()


FORMAT = "crowdveil release 5"
_MEASURED = {
    "factors": "Measured along factors: what these leave out is bounded by its prior; a release along features "
    "measures it.",
    "features": "Measured along features: every direction in which they differ.",
}
_NO_LEANING = (
    "Every interval includes zero: with this many voters and this epsilon, no weight by itself can be told from zero. "
    "A dilemma weighs several together and may still be decided; its certainty says whether it is."
)
_SUPPOSED = " A probability from it tells more of what is usual in crowds than of this one."


@dataclass(frozen=True, eq=False)
class Release(Publication):
    """A crowd's preference that may be published: parameter, guarantee and uncertainty."""

    study: Study
    parameter: FloatArray
    guarantee: Guarantee
    mechanism: str
    noise: NoiseDistribution
    sampler: str
    """Where the noise came from, in words."""
    exact: bool
    """False for floating-point noise, which is for experiments and protects nobody."""
    facts: Mapping[str, Any]
    ledger: Mapping[str, Any] | None
    """The id of the ledger that was charged, and the entry."""
    version: str
    unknown: Uncertainty | None = None
    """The uncertainty of the crowd's preference besides the noise; None for the paper's society."""
    indifference: Indifference | None = None
    """The crowd's threshold, in a study that allows a third answer."""
    reliability: Reliability | None = None
    """The share of people who answer the same way twice, in a study that repeats one dilemma."""
    on_save: Callable[[str], None] | None = field(default=None, repr=False)
    """Called with the digest once the release is durable, so that the ledger records the delivery."""

    @cached_property
    def relayed(self) -> RelayedPromise | None:
        """The additional promise, if the reports came through a relay."""
        said = self.facts.get("relayed")
        return None if said is None else RelayedPromise.from_dict(said)

    @cached_property
    def features_known(self) -> BoolArray:
        """Whether anything is known about each feature: not if the study's dilemmas never differ in it.

        Then its coordinate, its error bar and its interval are zero, and say nothing.
        """
        if self.unknown is None:
            return np.ones(len(self.parameter), bool)
        return np.asarray(self.unknown.basis.any(axis=1) | self.unknown.rest.any(axis=1))

    @cached_property
    def error_bars(self) -> FloatArray:
        """The largest error of each coordinate at 95 % confidence (for a society: the error from noise alone)."""
        if self.unknown is None:
            return np.broadcast_to(np.asarray(self.noise.half_widths(ERROR_BAR)), self.parameter.shape)
        return _reach_from(self.parameter, self.intervals)

    @cached_property
    def intervals(self) -> FloatArray:
        """The ends of a 95 % interval for each coordinate, one row per feature.

        For a crowd's preference, it covers noise, sampling, doubt and the directions left out, and is centred on the
        unshrunk estimate. So it holds whatever the crowd is like, and need not be symmetric around the parameter.
        """
        if self.unknown is None:
            return np.stack([self.parameter - self.error_bars, self.parameter + self.error_bars], axis=1)
        return intervals(self.unknown, self.noise, np.eye(len(self.parameter)), left_out=True)

    @cached_property
    def factor_values(self) -> FloatArray:
        """The parameter along the study's factors: the theta for which A theta is nearest to the parameter.

        If the preference was also measured in other directions, theta is that of the factors alone.
        """
        return self._factor_directions @ self.parameter

    @cached_property
    def _factor_directions(self) -> FloatArray:
        along = self.study.factor_map
        return along if self.unknown is None else self.unknown.along_factors(along)

    @cached_property
    def factor_intervals(self) -> FloatArray:
        """The ends of a 95 % interval for the crowd's preference along each factor, one row per factor."""
        if self.unknown is None:
            widths = np.array([self.noise.half_width(row, ERROR_BAR) for row in self._factor_directions])
            return np.stack([self.factor_values - widths, self.factor_values + widths], axis=1)
        return intervals(self.unknown, self.noise, self._factor_directions, left_out=False)

    @cached_property
    def factor_bars(self) -> FloatArray:
        """The largest error of the preference along each factor at 95 % confidence."""
        return _reach_from(self.factor_values, self.factor_intervals)

    @property
    def known(self) -> BoolArray:
        """Whether anything is known about each factor: if not, its interval is the whole range."""
        if self.unknown is None:
            return np.ones(len(self.factor_values), bool)
        ranges = np.array([self.unknown.whole_range(row) for row in self._factor_directions])
        return np.asarray(self.factor_intervals[:, 1] - self.factor_intervals[:, 0] < 2 * ranges)

    def content(self) -> dict[str, Any]:
        """Return the content of the file apart from the guarantee."""
        return {
            "format": FORMAT,
            "study": self.study.as_dict(),
            "study_fingerprint": self.study.fingerprint,
            "parameter": dict(zip(self.study.feature_names, self.parameter.tolist(), strict=True)),
            "error_bars": dict(zip(self.study.feature_names, self._where_known(self.error_bars), strict=True)),
            "intervals": dict(zip(self.study.feature_names, self._where_known(self.intervals), strict=True)),
            "factors": [
                {"name": factor.name, "value": value, "interval": interval, "known": known}
                for factor, value, interval, known in zip(
                    self.study.factors,
                    self.factor_values.tolist(),
                    self.factor_intervals.tolist(),
                    self.known.tolist(),
                    strict=True,
                )
            ],
            "unknown": None if self.unknown is None else self.unknown.as_dict(),
            "indifference": None if self.indifference is None else self.indifference.as_dict(),
            **({} if self.reliability is None else {"reliability": self.reliability.as_dict()}),
            "noise": self.noise.as_dict(),
        }

    def _where_known(self, values: FloatArray) -> list[Any]:
        """Return values of the features as plain data, None where nothing is known."""
        return [value if known else None for value, known in zip(values.tolist(), self.features_known, strict=True)]

    def page(self, path: str | PathLike[str]) -> None:
        """Write a readable page about the release: what the crowd prefers, and what voters are promised."""
        from crowdveil.pages.release_page import release_page  # a layer above; the contract lists this exception

        write_text(path_of(path), release_page([self]))

    def to_polars(self) -> pl.DataFrame:
        """Return one row per feature: the crowd's weight on it, its error bar, and the ends of its 95 % interval.

        The last three are null if nothing is known about the feature.
        """
        import polars as pl

        return pl.DataFrame(
            {
                "feature": list(self.study.feature_names),
                "label": [feature.label for feature in self.study.features],
                "weight": self.parameter,
                "error_bar": self._where_known(self.error_bars),
                "low": self._where_known(self.intervals[:, 0]),
                "high": self._where_known(self.intervals[:, 1]),
            }
        )

    def factors_to_polars(self) -> pl.DataFrame:
        """Return one row per factor: its poles, the crowd's weight from one to the other, and the 95 % interval."""
        import polars as pl

        return pl.DataFrame(
            {
                "factor": [factor.name for factor in self.study.factors],
                "from": [factor.poles[0] for factor in self.study.factors],
                "to": [factor.poles[1] for factor in self.study.factors],
                "weight": self.factor_values,
                "error_bar": self.factor_bars,
                "low": self.factor_intervals[:, 0],
                "high": self.factor_intervals[:, 1],
                "known": self.known,
            }
        )

    def error_parts(self) -> pl.DataFrame:
        """Return one row per factor, and one per feature: the causes of its 95 % interval, and half of its width.

        Each of the parts noise, sampling, model (clipping, the model of voters, the dilemmas) and left out (directions
        that no factor covers, where they were not measured) is half of the width that the interval would have if there
        were no other cause. They do not add up: the half width is at least the root of the sum of the squares of noise,
        sampling and left out, and at most that plus the model's part (where dilemmas may have shown less than supposed,
        ``unknown.shown``, the root is first divided by that). It is less only where the interval is cut off at the
        largest preference possible. Where the factors are the features, these have the only rows.
        """
        import polars as pl

        rows: list[tuple[Any, ...]] = []
        if not self.study.factors_are_features:
            names = [factor.name for factor in self.study.factors]
            along = zip(names, self._factor_directions, self.factor_intervals, strict=True)
            rows += [("factor", name, *self._parts(row, ends, left_out=False)) for name, row, ends in along]
        weights = zip(self.study.feature_names, np.eye(len(self.parameter)), self.intervals, strict=True)
        rows += [("feature", name, *self._parts(row, ends, left_out=True)) for name, row, ends in weights]
        return pl.DataFrame(
            rows, ["kind", "name", "noise", "sampling", "model", "left_out", "half_width"], orient="row"
        )

    def _parts(self, direction: FloatArray, ends: FloatArray, *, left_out: bool) -> list[float]:
        """Return the parts of the error along a direction, and half of the width of its interval."""
        noise = self.noise.half_width(direction, ERROR_BAR)
        half_width = float(ends[1] - ends[0]) / 2
        if self.unknown is None:
            return [noise, 0.0, 0.0, 0.0, half_width]
        parts = self.unknown.error_parts(direction, noise, ERROR_BAR, left_out=left_out)
        center = self.unknown.margin(direction)
        low, high = self.unknown.as_shown(center - parts.model, center + parts.model)
        return [parts.noise, parts.sampling, (high - low) / 2, parts.left_out, half_width]

    def to_pandas(self) -> Any:
        """Return ``to_polars`` as a pandas table, if pandas is installed."""
        return as_pandas(self.to_polars())

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw the crowd's weight on each factor, then on each feature, with 95 % bars and the largest at the top.

        With a path, write it to a .png or .svg file too.
        """
        from crowdveil.figure import plotted

        return plotted(self._figure, path)

    def _figure(self) -> Plot:
        from crowdveil.figure import Plot

        order = np.argsort(self.parameter, kind="stable")
        labels = [self.study.features[i].label + ("" if self.features_known[i] else " (not known)") for i in order]
        factors = [] if self.study.factors_are_features else np.argsort(self.factor_values, kind="stable").tolist()
        labels += [f"{self.study.factors[i].title}: {self.study.factors[i].poles[1]}" for i in factors]
        figure = Plot(figsize=(7, 1 + 0.3 * len(labels)), layout="constrained")
        axes = figure.subplots()
        places = np.arange(len(labels))
        for rows, values, bars, colour in (
            (places[: len(order)], self.parameter[order], self.error_bars[order], "#4477aa"),
            (places[len(order) :], self.factor_values[factors], self.factor_bars[factors], "#aa3377"),
        ):
            axes.barh(rows, values, xerr=bars, color=colour, ecolor="#333333")
        axes.set_yticks(places, labels)
        axes.axvline(0, color="#333333", linewidth=0.8)
        axes.set_xlabel(f"the crowd's weight, and how far it may be off: {self.bars_cover} (95 %)")
        axes.set_title(self._summary())
        return figure

    @property
    def measured(self) -> str | None:
        """ "features" if every direction was measured in which they differ, "factors" if only these were.

        None for a paper's society, and where the factors leave nothing out.
        """
        if self.unknown is None or not (self.unknown.left_out or self.unknown.rest.any()):
            return None
        return "factors" if self.unknown.rest.any() else "features"

    @property
    def measured_sentence(self) -> str | None:
        """A sentence about what was measured; None where there was no choice."""
        return None if self.measured is None else _MEASURED[self.measured]

    @property
    def no_leaning_sentence(self) -> str | None:
        """A sentence for a release in which nothing can be told from zero; None where something can."""
        ends = np.concatenate([self.factor_intervals, self.intervals])
        if ((ends[:, 0] > 0) | (ends[:, 1] < 0)).any():
            return None
        return _NO_LEANING + ("" if self.unknown is None else _SUPPOSED)

    @property
    def remarks(self) -> list[str]:
        """Sentences to read before the numbers: what was measured, in which dilemmas, and where nothing shows."""
        said = (self.measured_sentence, self.facts.get("dilemmas"), self.no_leaning_sentence)
        return [sentence for sentence in said if sentence is not None]

    @property
    def bars_cover(self) -> str:
        """The sources of error that error bars and intervals cover, in words."""
        return "noise alone" if self.unknown is None else "noise, sampling and what the model may be off by"

    def __repr__(self) -> str:
        return f"<release: {self._summary()}>"

    def _repr_html_(self) -> str:
        rows = [
            (feature.label, weight, "not known" if bar is None else f"± {bar:.3f}")
            for feature, weight, bar in zip(
                self.study.features, self.parameter.tolist(), self._where_known(self.error_bars), strict=True
            )
        ]
        factors = [
            (f"{factor.title}: {factor.poles[1]}", weight, f"{low:+.3f} to {high:+.3f}" if known else "not known")
            for factor, weight, (low, high), known in zip(
                self.study.factors,
                self.factor_values.tolist(),
                self.factor_intervals.tolist(),
                self.known.tolist(),
                strict=True,
            )
        ]
        shown = [([] if self.study.factors_are_features else factors, "factor"), (rows, "feature")]
        body = "".join(_html_rows(part, name) for part, name in shown if part)
        return f"<table><caption>{html.escape(self._summary())}. With 95 %: {self.bars_cover}.</caption>{body}</table>"

    def _summary(self) -> str:
        promise = self.guarantee
        delta = f", delta {promise.delta:g}" if promise.delta else ""
        if self.relayed is not None:
            delta = f", behind a relay {self.relayed.epsilon:.4g} with delta {self.relayed.delta:g},"
        what = "" if self.exact else ", for experiments: protects nobody"
        alike = "" if self.reliability is None else f", {self.reliability.share:.0%} answer alike"
        return (
            f"{self.study.title}, {promise.voters} {plural(promise.voters, 'voter')}, {promise.paradigm.name} at "
            f"epsilon {promise.epsilons}{delta} by {self.mechanism}{alike}{what}"
        )


def check_release(given: object) -> None:
    """Refuse anything that is not a release, such as the path of one."""
    check_type(given, Release, "the release", "read it first, with read_release(path)")


def read_release(path: str | PathLike[str], *, allow_experiment: bool = False) -> Release:
    """Read and check a release file; one made with floating-point noise must be allowed explicitly."""
    return read_publication(path, "the release file", release_from_dict, allow_experiment)


def release_from_dict(data: Any, *, allow_experiment: bool = False) -> Release:
    """Check the plain data of a release and build it."""
    return publication_from_dict(data, FORMAT, "release", _release, allow_experiment)


def _release(data: Mapping[str, Any], study: Study) -> Release:
    if set(data["parameter"]) != set(study.feature_names):
        raise CrowdveilError("its parameter does not name the study's features")
    release = Release(
        study=study,
        parameter=np.array([float(data["parameter"][name]) for name in study.feature_names]),
        noise=noise_from_dict(data["noise"], study.dimension),
        unknown=None if data["unknown"] is None else Uncertainty.from_dict(data["unknown"], study.dimension),
        indifference=None if data["indifference"] is None else Indifference.from_dict(data["indifference"]),
        reliability=Reliability.from_dict(data["reliability"]) if "reliability" in data else None,
        **publication_fields(data),
    )
    _check_relayed(release)
    if type(release.facts.get("group_voters", 0)) is not int:
        raise CrowdveilError("the number of voters of its group is no whole number: the release is damaged")
    if not all(math.isfinite(value) for value in release.parameter):
        raise CrowdveilError("its parameter is not finite: the release is damaged")
    return release


def _check_relayed(release: Release) -> None:
    """Recompute the promise of a relay's batches, and refuse one that is not about this release."""
    try:
        promise = release.relayed
        guarantee = release.guarantee
    except (KeyError, TypeError, ValueError) as error:
        raise CrowdveilError(f"what it says about its relay cannot be read: {type(error).__name__} {error}") from None
    if promise is not None and (promise.local, sum(promise.batches)) != (guarantee.epsilon, guarantee.voters):
        raise CrowdveilError("its relay's batches are not those of its voters: do not rely on it")


def _reach_from(values: FloatArray, intervals: FloatArray) -> FloatArray:
    """Return the distance from each value to the farther end of its interval."""
    return np.maximum(np.abs(intervals[:, 0] - values), np.abs(intervals[:, 1] - values))


def _html_rows(rows: list[tuple[str, float, str]], name: str) -> str:
    cells = "".join(
        f"<tr><td>{html.escape(label)}</td><td>{weight:+.3f}</td><td>{off}</td></tr>"
        for label, weight, off in sorted(rows, key=lambda row: -row[1])
    )
    return f"<tr><th>{name}</th><th>weight</th><th>95 %</th></tr>{cells}"
