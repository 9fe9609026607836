"""Routes that write: a voter's report or ballot, its withdrawal, and a relay's batch, opened, checked and stored once.

An answer of 200 or 201 is sent only after the commit.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from crowdveil.errors import Reason, Refusal
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.protocol.relay import (
    DIGEST_HEADER,
    SEALED_TYPE,
    SIGNATURE_HEADER,
    Acknowledgement,
    Batch,
    BatchHead,
    relay_terms,
    sealed_digest,
)
from crowdveil.protocol.report import check_report, refusals
from crowdveil.protocol.submission import (
    TOKEN_HEADER,
    Receipt,
    SubmissionKind,
    SubmissionStatus,
    check_about,
    check_ballot,
    is_token,
    report_id,
)
from crowdveil.service.api.errors import documented
from crowdveil.service.api.models import BallotBody, BatchAcknowledgement, Participation, ReportBody, StepBody
from crowdveil.service.api.polls import poll_named
from crowdveil.service.poll import HostedPoll
from crowdveil.service.service import Service
from crowdveil.service.store.batches import HostKey, OpenedReport
from crowdveil.service.store.database import rows_at_once
from crowdveil.service.store.submissions import SubmissionRow
from crowdveil.study.plain_data import canonical_json

Token = Annotated[str | None, Header(alias=TOKEN_HEADER, description="The ballot token: 16 random bytes as base64url.")]

REFUSED = {
    Reason.DIFFERENT_REPORT: "something else is already stored for this ballot token, and it stays",
    Reason.UNKNOWN_BALLOT: "this poll accepts only links that were made for it, and this token is not from one of them",
    Reason.WITHDRAWN: "the submission with this ballot token was withdrawn; the token cannot be used again",
    Reason.CLOSED: "this poll is closed",
    Reason.NOT_OPEN_YET: "this poll is not open yet",
    Reason.FULL: "this poll already has as many participants as it accepts",
}
"""Reasons why the store refuses a submission, in words for its sender."""
STORED: dict[int | str, dict[str, Any]] = {
    200: {"model": Receipt, "description": "The same submission was stored before."},
    201: {"model": Receipt, "description": "Stored, durably."},
    **documented(400, 403, 404, 409, 410),
}
PATIENCE_SECONDS = 10
Digest = Annotated[str | None, Header(alias=DIGEST_HEADER, description="The body's SHA-256 (RFC 9530).")]
Signature = Annotated[str | None, Header(alias=SIGNATURE_HEADER, description="The relay's Ed25519 signature.")]
_BATCH_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "Sealed reports of one length, one after the other, in random order.",
        "content": {SEALED_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


def submission_routes(service: Service) -> APIRouter:
    """Return the routes under /api/polls that a voter's device writes to."""
    routes = APIRouter(prefix="/api/polls", tags=["taking part"])

    @routes.put("/{poll}/report", status_code=201, responses=STORED, openapi_extra=_body(ReportBody))
    async def put_report(poll: str, request: Request, token: Token = None) -> Response:
        """Send a report to a distributed poll."""
        return await submit(poll, request, token, SubmissionKind.REPORT)

    @routes.put("/{poll}/ballot", status_code=201, responses=STORED, openapi_extra=_body(BallotBody))
    async def put_ballot(poll: str, request: Request, token: Token = None) -> Response:
        """Send a ballot to a central poll."""
        return await submit(poll, request, token, SubmissionKind.BALLOT)

    async def submit(name: str, request: Request, token: str | None, kind: SubmissionKind) -> Response:
        poll = service.store.polls.cached(name)
        if poll is None:
            poll = await run_in_threadpool(poll_named, service, name)
        try:
            return await store(poll, id_of_token(token), await request.body(), kind)
        except Refusal as refusal:
            service.commits.count_refusal(name, refusal.reason.value)
            raise

    async def store(poll: HostedPoll, id: str, raw: bytes, kind: SubmissionKind) -> Response:
        outcome = await service.commits.put(read_submission(raw, poll, id, kind))
        if isinstance(outcome, Reason):
            raise Refusal(outcome, REFUSED[outcome])
        receipt = Receipt(id, outcome, poll.completion_code, poll.return_url)
        return JSONResponse(asdict(receipt), 201 if outcome is SubmissionStatus.STORED else 200)

    @routes.post("/{poll}/steps", status_code=204, responses=documented(404, 409))
    def count_step(poll: str, told: StepBody) -> Response:
        """Count that somebody has reached a step. Only a number for each step and day is stored."""
        found = poll_named(service, poll)
        _check_direct(found)
        service.store.steps.count(found.name, told.step.value, service.today())
        return Response(status_code=204)

    @routes.get("/{poll}/participation", response_model=Participation, responses=documented(400, 403, 404, 409, 410))
    def check(poll: str, token: Token = None) -> dict[str, str]:
        """Return whether a ballot token can still be used, before its voter has answered anything."""
        asked = poll_named(service, poll)
        _check_direct(asked)
        found = service.store.submissions.check(asked.name, id_of_token(token))
        if isinstance(found, Reason):
            raise Refusal(found, REFUSED[found])
        return {"status": "unused" if found is None else "stored"}

    @routes.delete("/{poll}/participation", status_code=204, responses=documented(400, 404, 409))
    def withdraw(poll: str, token: Token = None) -> Response:
        """Delete the submission of a ballot token, and never accept the token again."""
        asked = poll_named(service, poll)
        _check_direct(asked)
        if not service.store.submissions.withdraw(asked.name, id_of_token(token)):
            raise Refusal(Reason.NOTHING_STORED, f"poll {poll} has nothing stored for this ballot token")
        return Response(status_code=204)

    return routes


def read_submission(raw: bytes, poll: HostedPoll, id: str, kind: SubmissionKind) -> SubmissionRow:
    """Read a submission and check it before anything is stored; refuse a wrong one with a reason."""
    _check_direct(poll)
    if poll.distributed is not (kind is SubmissionKind.REPORT):
        wanted = "reports, with the noise in them" if poll.distributed else "ballots"
        raise Refusal(Reason.WRONG_PLACE, f"poll {poll.name} takes {wanted}: see GET /api/polls/{poll.name}")
    try:
        body = json.loads(raw)
    except json.JSONDecodeError as error:
        raise Refusal(Reason.MALFORMED, f"the body is not JSON: {error}") from None
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refusal(Reason.MALFORMED, "the body must be a JSON object")
    about = body.pop("about", {})
    check_about(about, poll)
    if kind is SubmissionKind.REPORT:
        check_report(body, poll.terms)
        epsilon = Epsilon.of_millionths(body["epsilon_micro"])
        return SubmissionRow(poll.name, id, canonical_json(body), canonical_json(about), epsilon)
    check_ballot(body, poll.study)
    return SubmissionRow(poll.name, id, canonical_json(body["records"]), canonical_json(about))


def _check_direct(poll: HostedPoll) -> None:
    """Refuse a request about a vote if the poll has a relay: the device should then ask the relay, never the host."""
    if poll.relay is not None:
        raise Refusal(Reason.WRONG_PLACE, f"poll {poll.name} takes sealed reports through its relay, {poll.relay.url}")


def id_of_token(token: str | None) -> str:
    """Return the report id of a ballot token; refuse anything else."""
    if token is None:
        raise Refusal(Reason.MISSING_BALLOT, f"the header {TOKEN_HEADER} with the ballot token is missing")
    if not is_token(token):
        raise Refusal(Reason.BAD_BALLOT, "a ballot token is 16 bytes as 22 base64url characters")
    return report_id(token)


def _body(model: type[ReportBody] | type[BallotBody]) -> dict[str, Any]:
    """Describe a body that the framework does not parse: it is compared as sent, including numbers beyond 2^53."""
    schema = model.model_json_schema()
    schema = _written_out(schema, schema.pop("$defs", {}))
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _written_out(schema: Any, named: dict[str, Any]) -> Any:
    """Replace the references in a schema by their definitions."""
    if isinstance(schema, list):
        return [_written_out(item, named) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _written_out(named[schema["$ref"].rpartition("/")[2]], named)
    return {key: _written_out(item, named) for key, item in schema.items()}


def check_sender(service: Service, poll: HostedPoll, announced: BatchHead, signature: str | None) -> None:
    """Refuse a batch that the poll's relay did not sign, before any of it is read."""
    if poll.relay is None:
        raise Refusal(Reason.WRONG_PLACE, f"poll {poll.name} has no relay: devices send their reports themselves")
    announced.check_signature(_relay_key(service, poll), signature)


def take_batch(service: Service, poll: HostedPoll, batch: Batch) -> Acknowledgement:
    """Store a batch from a poll's relay. When this returns, the result is durable. A repeated batch is stored once.

    Reports that no honest device could have sent are refused one by one, and counted by reason. A batch below the
    poll's minimum size is refused as a whole, and nothing in it is opened.
    """
    fewest = relay_terms(poll).batch
    if (before := service.store.batches.acknowledged(poll.name, batch.id)) is not None:
        return before
    if len(batch.sealed) < fewest:
        raise Refusal(
            Reason.BATCH_TOO_SMALL,
            f"poll {poll.name} takes batches of {fewest} reports or more, got {len(batch.sealed)}",
        )
    key = service.store.batches.key(poll)
    refused: Counter[str] = Counter()
    opened: list[OpenedReport] = []
    for some in rows_at_once(batch.sealed):
        opened += _open(some, poll, key, refused)
    return service.store.batches.put(poll, batch.id, len(batch.sealed), opened, refused, service.today())


def ask_relay_key(url: str) -> str:
    """Ask a relay for the public key with which it signs its batches."""
    import httpx  # only hosts with a relay need it

    try:
        answer = httpx.get(f"{url}/api/relay", timeout=PATIENCE_SECONDS)
        return str(answer.raise_for_status().json()["public_key"])
    except (httpx.HTTPError, KeyError, TypeError, ValueError):
        raise Refusal(Reason.UNAVAILABLE, f"the relay {url} cannot be asked for its key: try again") from None


def _relay_key(service: Service, poll: HostedPoll) -> str:
    """Return the relay's public key. It is requested once, from the relay's address in the poll, and then kept."""
    known = service.store.batches.relay_key(poll.name)
    return known or service.store.batches.pin_relay_key(poll.name, ask_relay_key(relay_terms(poll).url))


def _open(batch: Sequence[bytes], poll: HostedPoll, key: HostKey, refused: Counter[str]) -> Iterator[OpenedReport]:
    """Open sealed reports and check them together; count the refused ones by reason."""
    unsealed: list[tuple[str, Any]] = []
    for sealed in batch:
        try:
            unsealed.append((sealed_digest(sealed), key.configuration.unseal(sealed, key.private)))
        except Refusal as refusal:
            refused[refusal.reason.value] += 1
    faults = refusals([report for _, report in unsealed], poll.terms)
    for (digest, report), fault in zip(unsealed, faults, strict=True):
        if fault is None:
            yield OpenedReport(digest, canonical_json(report))
        else:
            refused[fault.reason.value] += 1


def batch_routes(service: Service) -> APIRouter:
    """Return the route under /api/polls that a relay writes to."""
    routes = APIRouter(prefix="/api/polls", tags=["relay"])

    @routes.put(
        "/{poll}/batches/{batch}",
        response_model=BatchAcknowledgement,
        responses=documented(403, 404, 409),
        openapi_extra=_BATCH_BODY,
    )
    async def put_batch(
        poll: str, batch: str, request: Request, digest: Digest = None, signature: Signature = None
    ) -> dict[str, Any]:
        """Store a batch of sealed reports, as a whole and once. The answer is sent after the commit."""
        found = await run_in_threadpool(poll_named, service, poll)
        try:
            announced = BatchHead(found.name, batch, digest or "")
            await run_in_threadpool(check_sender, service, found, announced, signature)
        except Refusal:
            async for _ in request.stream():  # Discarded: the sender reads the reason only after sending everything.
                pass
            raise
        read = await run_in_threadpool(announced.read, await request.body())
        acknowledged = await run_in_threadpool(take_batch, service, found, read)
        return acknowledged.as_dict()

    return routes
