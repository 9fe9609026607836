"""The releases of all groups of a crowd, what differs between them, and where they are written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import NormalDist

import numpy as np

from crowdveil.effect_release import GroupDifference
from crowdveil.estimation.ratios import told_apart
from crowdveil.files import check_writable
from crowdveil.privacy.unknown import ERROR_BAR
from crowdveil.releases import Release


@dataclass(frozen=True)
class GroupReleases:
    """A release for each group of voters."""

    by: str
    """The question about voters that divides them."""
    releases: Mapping[str, Release]
    deliver: Callable[[str], None] | None = None
    """Where one charge paid for all: hears the digest of all together when they are saved."""

    @property
    def differences(self) -> tuple[GroupDifference, ...]:
        """What differs between groups, factor by factor, and which of it can be told from noise and chance."""
        return preference_differences(self.releases)

    @property
    def digest(self) -> str:
        """The checksum of all their checksums: it names these releases and no others."""
        return hashlib.sha256("".join(sorted(one.digest for one in self.releases.values())).encode()).hexdigest()

    def save(self, path: str | Path) -> dict[str, Path]:
        """Write a file for each group beside ``path``, whole or not at all; then the ledger notes that they are there.

        Returns where the release of each group is.
        """
        paths = group_paths(path, list(self.releases))
        for label, release in self.releases.items():
            release.save(paths[label])
        if self.deliver is not None:
            self.deliver(self.digest)
        return paths

    def __getitem__(self, label: str) -> Release:
        return self.releases[label]

    def __repr__(self) -> str:
        told = sum(one.told_apart for one in self.differences)
        return f"<releases by {self.by}: {', '.join(self.releases)}; {told} differences told>"


def group_paths(out: str | Path, labels: Sequence[str]) -> dict[str, Path]:
    """Return where the release of each group is written: beside ``out``, by number and name."""
    out = Path(out)
    names = {label: "".join(c if c.isalnum() else "-" for c in label).strip("-").lower() for label in labels}
    paths = {label: out.with_name(f"{out.stem}-{names[label] or 'group'}{out.suffix}") for label in labels}
    if len(set(paths.values())) < len(paths):
        paths = {label: out.with_name(f"{out.stem}-{place}{out.suffix}") for place, label in enumerate(labels, start=1)}
    for path in paths.values():
        check_writable(path)
    return paths


def preference_differences(releases: Mapping[str, Release]) -> tuple[GroupDifference, ...]:
    """Compare groups along every factor, the first less the second, around the unshrunk estimates.

    Errors of different people's releases are independent: they add up by their squares. Which differences are told from
    noise and chance is judged of all together.
    """
    found, p_values = [], []
    for one, other in combinations(releases, 2):
        for k, factor in enumerate(releases[one].study.factors):
            ends = [releases[label].factor_intervals[k] for label in (one, other)]
            centers = [float(low + high) / 2 for low, high in ends]
            reach = float(np.hypot(*((high - low) / 2 for low, high in ends)))
            known = bool(releases[one].known[k] and releases[other].known[k])
            gap = centers[0] - centers[1]
            quantile = NormalDist().inv_cdf((1 + ERROR_BAR) / 2)
            p_value = 2 * (1 - NormalDist().cdf(abs(gap) / (reach / quantile))) if known and reach > 0 else 1.0
            found.append(GroupDifference(factor.name, one, other, gap, gap - reach, gap + reach, told_apart=False))
            p_values.append(p_value)
    return tuple(replace(one, told_apart=told) for one, told in zip(found, told_apart(p_values), strict=True))
