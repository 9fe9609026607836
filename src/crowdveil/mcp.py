"""A Model Context Protocol server, so that an AI agent can ask the crowd.

It offers three tools: a description of the study, a decision, and the list of releases. They read only releases, so
asking costs no privacy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ParamSpec, Protocol, TypeVar

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, InputRequiredResult, ToolAnnotations
from pydantic import Field, ValidationError, WithJsonSchema

from crowdveil.decision import DEFAULT_CERTAINTY, decide
from crowdveil.errors import CrowdveilError, shown
from crowdveil.pages.plain_words import guarantee_sentences
from crowdveil.protocol.decisions import (
    ALTERNATIVES_SCHEMA,
    CURRENT,
    LATEST,
    read_dilemma,
    summarise_release,
    write_decision,
)
from crowdveil.releases import Release
from crowdveil.study.features import Category, Feature
from crowdveil.version import VERSION

P = ParamSpec("P")
T = TypeVar("T")

INSTRUCTIONS = (
    "These tools tell what a crowd of voters would choose in an ethical dilemma, from a release of their preferences "
    "under differential privacy. Call describe_study first: it lists the features in which alternatives are described. "
    "Then call decide_dilemma with two or more alternatives. Where there are several polls, list_releases lists them, "
    "and the poll must be named. When it is too close to call, too much is unknown for the crowd's margin: do not "
    "present the first of the ranking as the crowd's choice. Some studies let voters treat both alternatives equally: "
    "there, probabilities has three shares, and the choice may be to toss a coin. The probability is the share of "
    "voters who agree. The certainty is about the voters' choice as a whole, and the population certainty is about the "
    "people from whom they were drawn."
)

PollName = Annotated[
    str | None, Field(description="The poll whose voters should decide. Not needed where there is only one.")
]
ReleaseArgument = Annotated[
    str, Field(description="A release's id (its checksum); current, the one that decisions use; or latest.")
]


class ReleaseSource(Protocol):
    """A source of releases: a website's client, or a file."""

    def releases(self, poll: str | None = None) -> list[dict[str, Any]]:
        """List the releases, newest first."""

    def release(self, id: str = CURRENT, *, poll: str | None = None) -> Release:
        """Return a release by its id, or the ``current`` or ``latest`` one."""


@dataclass(frozen=True)
class SingleRelease:
    """A single release from a file."""

    only: Release

    def releases(self, poll: str | None = None) -> list[dict[str, Any]]:
        """List the one release."""
        return [summarise_release(self.only)]

    def release(self, id: str = CURRENT, *, poll: str | None = None) -> Release:
        """Return the one release; refuse any other id, and every poll."""
        if poll is not None:
            raise CrowdveilError(f"there is no poll {poll!r} here, only one release: leave the poll out")
        if id not in (CURRENT, LATEST, self.only.digest):
            raise CrowdveilError(f"there is no release {id!r} here: use {CURRENT}, or {self.only.digest}")
        return self.only


class _WordedServer(MCPServer):
    """A server that tells what is wrong with the arguments of a call in words."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; reword a refusal of its arguments."""
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if isinstance(error.__cause__, ValidationError):
                raise ToolError(_misfit(name, arguments, error.__cause__)) from None
            raise


def _misfit(tool: str, given: dict[str, Any], error: ValidationError) -> str:
    """Return which arguments of a tool are missing or do not fit, and what to give."""
    found = [(str(one["loc"][0]), one) for one in error.errors(include_url=False)]
    missing = [name for name, one in found if one["type"] == "missing"]
    wrong = [f"{name} is {shown(one['input'])}: {one['msg']}" for name, one in found if name not in missing]
    if missing:
        got = f"got {', '.join(given)}" if given else "got no arguments"
        wrong.append(f"{got}: give {' and '.join(_ARGUMENTS.get(name, name) for name in missing)}")
    return f"{tool}: {'; '.join(wrong)}"


_ARGUMENTS = {
    "alternatives": 'alternatives, a list of two or more, like [{"girl": 1}, {"dog": 2}], by the features that '
    "describe_study lists"
}
"""How the arguments that a call must have are given."""


def mcp_server(source: ReleaseSource, usual_poll: str | None = None) -> MCPServer:
    """Return the server; its ``run()`` communicates over standard input and output.

    ``usual_poll`` is the poll to ask if the agent names none.
    """
    server = _WordedServer(
        "crowdveil", title="Ask the crowd", instructions=INSTRUCTIONS, version=VERSION, log_level="WARNING"
    )
    reading = ToolAnnotations(read_only_hint=True, idempotent_hint=True)

    @server.tool(title="What the study is about", annotations=reading)
    def describe_study(poll: PollName = None, release: ReleaseArgument = CURRENT) -> dict[str, Any]:
        """Describe the study behind a release: its question, the features with their ranges, and what is promised."""
        return _describe(_told(source.release, release, poll=poll or usual_poll))

    @server.tool(title="Ask the crowd to decide", annotations=reading)
    def decide_dilemma(
        alternatives: Annotated[Any, WithJsonSchema(ALTERNATIVES_SCHEMA)],
        poll: PollName = None,
        release: ReleaseArgument = CURRENT,
        certainty: Annotated[
            float, Field(ge=0.5, lt=1, description="Below this certainty the answer is: too close to call.")
        ] = DEFAULT_CERTAINTY,
    ) -> dict[str, Any]:
        """Decide which alternative the crowd would choose, with ranking, probability, certainty and privacy guarantee.

        ``choice`` is null if it is too close to call, and "toss a coin" if most voters would treat both equally;
        ``reason`` says why.
        """
        return _told(_decide, _told(source.release, release, poll=poll or usual_poll), alternatives, certainty)

    @server.tool(title="Releases to ask", annotations=reading)
    def list_releases() -> dict[str, Any]:
        """List the releases that can be asked, newest first."""
        return {"releases": _told(source.releases)}

    return server


def _told(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function; report a mistake that the agent can correct as a ``ToolError``, in words."""
    try:
        return work(*args, **kwargs)
    except CrowdveilError as error:
        raise ToolError(str(error)) from None


def _decide(release: Release, alternatives: Any, certainty: float) -> dict[str, Any]:
    dilemma = read_dilemma(release.study, alternatives)
    return write_decision(decide(release, dilemma, certainty), release.digest)


def _describe(release: Release) -> dict[str, Any]:
    study = release.study
    return {
        "release": release.digest,
        "study": study.name,
        "title": study.title,
        "question": study.question,
        "features": [_attribute(attribute) for attribute in study.attributes],
        "guarantee": guarantee_sentences(release),
    }


def _attribute(attribute: Feature | Category) -> dict[str, Any]:
    """Describe the values that an attribute of an alternative may have."""
    told = {"name": attribute.name, "meaning": attribute.label}
    if isinstance(attribute, Category):
        return {**told, "one_of": list(attribute.levels)}
    return {
        **told,
        "low": attribute.low,
        "high": attribute.high,
        "when_left_out": attribute.default,
        **({"words": dict(attribute.words)} if attribute.words else {}),
    }
