"""Taking part and withdrawing. An answer of 200 or 201 is sent after the commit, never before."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from crowdveil.errors import Reason, Refusal
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.protocol.ballot import check_about, check_ballot
from crowdveil.protocol.report import check_report
from crowdveil.protocol.submission import TOKEN_HEADER, Kind, Receipt, Status, is_token, report_id
from crowdveil.service.api.errors import documented
from crowdveil.service.api.models import BallotBody, Participation, ReportBody
from crowdveil.service.api.polls import poll_named
from crowdveil.service.poll import HostedPoll
from crowdveil.service.service import Service
from crowdveil.service.store.submissions import SubmissionRow
from crowdveil.study.plain_data import canonical_json

Token = Annotated[str | None, Header(alias=TOKEN_HEADER, description="The ballot token: 16 random bytes as base64url.")]

REFUSED = {
    Reason.DIFFERENT_REPORT: "something else is stored for this ballot token, and it stays",
    Reason.UNKNOWN_BALLOT: "this poll takes links that were made for it, and this token is none of them",
    Reason.WITHDRAWN: "what was sent with this ballot token has been withdrawn; it cannot be used again",
    Reason.CLOSED: "this poll is closed",
    Reason.NOT_OPEN_YET: "this poll is not open yet",
    Reason.FULL: "this poll has as many participants as it takes",
}
"""Why the store refuses a submission, for whoever sent it."""
_RESPONSES = {
    200: {"model": Receipt, "description": "The same was stored before."},
    201: {"model": Receipt, "description": "Stored, durably."},
    **documented(400, 403, 404, 409, 410),
}


def submission_routes(service: Service) -> APIRouter:
    """Return the routes under /api/polls that a voter's device writes to."""
    routes = APIRouter(prefix="/api/polls", tags=["taking part"])

    @routes.put("/{poll}/report", status_code=201, responses=_RESPONSES, openapi_extra=_body(ReportBody))
    async def put_report(poll: str, request: Request, token: Token = None) -> Response:
        """Send a report to a distributed poll."""
        return await submit(poll, request, token, Kind.REPORT)

    @routes.put("/{poll}/ballot", status_code=201, responses=_RESPONSES, openapi_extra=_body(BallotBody))
    async def put_ballot(poll: str, request: Request, token: Token = None) -> Response:
        """Send a ballot to a central poll."""
        return await submit(poll, request, token, Kind.BALLOT)

    async def submit(name: str, request: Request, token: str | None, kind: Kind) -> Response:
        poll = service.store.polls.cached(name)
        if poll is None:
            poll = await run_in_threadpool(poll_named, service, name)
        try:
            return await store(poll, id_of_token(token), await request.body(), kind)
        except Refusal as refusal:
            service.commits.count_refusal(name, refusal.reason.value)
            raise

    async def store(poll: HostedPoll, id: str, raw: bytes, kind: Kind) -> Response:
        outcome = await service.commits.put(read_submission(raw, poll, id, kind))
        if isinstance(outcome, Reason):
            raise Refusal(outcome, REFUSED[outcome])
        receipt = Receipt(id, outcome, poll.completion_code, poll.return_url)
        return JSONResponse(asdict(receipt), 201 if outcome is Status.STORED else 200)

    @routes.get("/{poll}/participation", response_model=Participation, responses=documented(400, 403, 404, 409, 410))
    def check(poll: str, token: Token = None) -> dict[str, str]:
        """Tell whether a ballot token can still be used, before its voter has answered anything."""
        asked = poll_named(service, poll)
        _check_direct(asked)
        found = service.store.submissions.check(asked.name, id_of_token(token))
        if isinstance(found, Reason):
            raise Refusal(found, REFUSED[found])
        return {"status": "unused" if found is None else "stored"}

    @routes.delete("/{poll}/participation", status_code=204, responses=documented(400, 404, 409))
    def withdraw(poll: str, token: Token = None) -> Response:
        """Delete what was sent with a ballot token, and never accept the token again."""
        asked = poll_named(service, poll)
        _check_direct(asked)
        if not service.store.submissions.withdraw(asked.name, id_of_token(token)):
            raise Refusal(Reason.NOTHING_STORED, f"poll {poll} has nothing stored for this ballot token")
        return Response(status_code=204)

    return routes


def read_submission(raw: bytes, poll: HostedPoll, id: str, kind: Kind) -> SubmissionRow:
    """Read and check what a voter's device sent, before anything is stored; refuse it for a reason."""
    _check_direct(poll)
    if poll.distributed is not (kind is Kind.REPORT):
        wanted = "reports, with the noise in them" if poll.distributed else "ballots"
        raise Refusal(Reason.WRONG_PLACE, f"poll {poll.name} takes {wanted}: see GET /api/polls/{poll.name}")
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise Refusal(Reason.MALFORMED, "the body must be a JSON object")
    about = body.pop("about", {})
    check_about(about, poll)
    if kind is Kind.REPORT:
        check_report(body, poll.terms)
        epsilon = Epsilon.of_millionths(body["epsilon_micro"])
        return SubmissionRow(poll.name, id, canonical_json(body), canonical_json(about), epsilon)
    check_ballot(body, poll.study)
    return SubmissionRow(poll.name, id, canonical_json(body["records"]), canonical_json(about))


def _check_direct(poll: HostedPoll) -> None:
    """Refuse a voter's device that should speak with the relay, and never with the host, about its token."""
    if poll.relay is not None:
        raise Refusal(Reason.WRONG_PLACE, f"poll {poll.name} takes sealed reports through its relay, {poll.relay.url}")


def id_of_token(token: str | None) -> str:
    """Return the report id of a ballot token, or refuse what is none."""
    if token is None:
        raise Refusal(Reason.MISSING_BALLOT, f"the header {TOKEN_HEADER} with the ballot token is missing")
    if not is_token(token):
        raise Refusal(Reason.BAD_BALLOT, "a ballot token is 16 bytes as 22 base64url characters")
    return report_id(token)


def _body(model: type[ReportBody] | type[BallotBody]) -> dict[str, Any]:
    """Describe a body that is read by hand: it is compared as it was sent, numbers beyond 2^53 included."""
    schema = model.model_json_schema()
    schema = _written_out(schema, schema.pop("$defs", {}))
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _written_out(schema: Any, named: dict[str, Any]) -> Any:
    """Put the definitions that a schema refers to in the places where it does."""
    if isinstance(schema, list):
        return [_written_out(item, named) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _written_out(named[schema["$ref"].rpartition("/")[2]], named)
    return {key: _written_out(item, named) for key, item in schema.items()}
