"""A crowd guides an AI's decisions in ethical dilemmas, and no voter is exposed.

The public API: what is listed here is documented, and changes only with notice in CHANGELOG.md. Nothing inside the
package imports from this page.

>>> from crowdveil import load_study
>>> load_study("kidney").dimension
5

A name is loaded when it is first used, so that a program which only decides loads nothing that could read an answer.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crowdveil.ballots import BallotFile, Ballots, open_ballots, write_ballots
    from crowdveil.client.client import Client
    from crowdveil.decision import Decision, Ranked, decide
    from crowdveil.errors import BudgetExceeded, CrowdveilError
    from crowdveil.estimation.fit import Preferences, fit_voters
    from crowdveil.estimation.society import Society, society
    from crowdveil.gather import release_from_reports
    from crowdveil.privacy.concentrated import ZcdpBudget
    from crowdveil.privacy.epsilon import Epsilon
    from crowdveil.privacy.guarantee import PARADIGMS, Guarantee, Paradigm
    from crowdveil.privacy.ledger.ledger import Ledger
    from crowdveil.privacy.personal_epsilons import read_personal_epsilons
    from crowdveil.privacy.planning.accuracy import Plan, plan
    from crowdveil.protocol.report import RefusedReport, Terms, check_report
    from crowdveil.publish import Prepared, Request, experiment, prepare, publish
    from crowdveil.releases import Release, load_release, save_release
    from crowdveil.sources.import_report import Imported, ImportReport
    from crowdveil.sources.moral_machine.moral_machine import import_moral_machine
    from crowdveil.sources.simulated import simulate_crowd, synthetic_crowd
    from crowdveil.sources.table import TableMapping, import_table, load_mapping
    from crowdveil.study.bundled import load_study
    from crowdveil.study.study import Alternative, Dilemma, Drawing, Feature, Study

__all__ = [
    "PARADIGMS",
    "Alternative",
    "BallotFile",
    "Ballots",
    "BudgetExceeded",
    "Client",
    "CrowdveilError",
    "Decision",
    "Dilemma",
    "Drawing",
    "Epsilon",
    "Feature",
    "Guarantee",
    "ImportReport",
    "Imported",
    "Ledger",
    "Paradigm",
    "Plan",
    "Preferences",
    "Prepared",
    "Ranked",
    "RefusedReport",
    "Release",
    "Request",
    "Society",
    "Study",
    "TableMapping",
    "Terms",
    "ZcdpBudget",
    "check_report",
    "decide",
    "experiment",
    "fit_voters",
    "import_moral_machine",
    "import_table",
    "load_mapping",
    "load_release",
    "load_study",
    "open_ballots",
    "plan",
    "prepare",
    "publish",
    "read_personal_epsilons",
    "release_from_reports",
    "save_release",
    "simulate_crowd",
    "society",
    "synthetic_crowd",
    "write_ballots",
]

_ROOMS = {
    "ballots": ("BallotFile", "Ballots", "open_ballots", "write_ballots"),
    "client.client": ("Client",),
    "decide": ("Decision", "Ranked", "decide"),
    "errors": ("BudgetExceeded", "CrowdveilError"),
    "gather": ("release_from_reports",),
    "preference.fit": ("Preferences", "fit_voters"),
    "preference.society": ("Society", "society"),
    "privacy.accuracy": ("Plan", "plan"),
    "privacy.concentrated": ("ZcdpBudget",),
    "privacy.epsilon": ("Epsilon",),
    "privacy.guarantee": ("PARADIGMS", "Guarantee", "Paradigm"),
    "privacy.ledger": ("Ledger",),
    "privacy.personal_epsilons": ("read_personal_epsilons",),
    "publish": ("Prepared", "Request", "experiment", "prepare", "publish"),
    "release": ("Release", "load_release", "save_release"),
    "report": ("RefusedReport", "Terms", "check_report"),
    "sources.import_report": ("ImportReport", "Imported"),
    "sources.moral_machine": ("import_moral_machine",),
    "sources.simulated": ("simulate_crowd", "synthetic_crowd"),
    "sources.table": ("TableMapping", "import_table", "load_mapping"),
    "studies": ("load_study",),
    "study": ("Alternative", "Dilemma", "Drawing", "Feature", "Study"),
}
_HOME = {name: f"{__name__}.{room}" for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _FrontPage(ModuleType):
    """Python sets a module as an attribute of its package: ``crowdveil.decision`` must stay the function all the same."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _FrontPage
