"""Taking part and withdrawing. An answer of 200 or 201 is sent after the commit, never before."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from fastapi.responses import JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from crowdveil.errors import Reason, Refusal
from crowdveil.protocol.tokens import is_token, report_id
from crowdveil.service.api.errors import documented
from crowdveil.service.api.models import BallotBody, Receipt, ReportBody
from crowdveil.service.api.polls import poll_named
from crowdveil.service.incoming import read_sent_ballot, read_sent_report
from crowdveil.service.poll import Poll
from crowdveil.service.service import Service
from crowdveil.service.store.sent import Outcome

Token = Annotated[
    str | None, Header(alias="Crowdveil-Ballot", description="The ballot token: 16 random bytes as base64url.")
]

_REFUSED = {
    Outcome.DIFFERENT: "something else is stored for this ballot token, and it stays",
    Outcome.UNKNOWN_BALLOT: "this poll takes the links that its host has sent, and this token is none of them",
    Outcome.WITHDRAWN: "what was sent with this ballot token has been withdrawn; it cannot be used again",
    Outcome.CLOSED: "this poll is closed",
    Outcome.NOT_OPEN_YET: "this poll is not open yet",
    Outcome.FULL: "this poll has as many participants as it takes",
}
_RESPONSES = {
    200: {"model": Receipt, "description": "The same was stored before."},
    201: {"model": Receipt, "description": "Stored, durably."},
    **documented(400, 403, 404, 409, 410),
}


def participation_routes(service: Service) -> APIRouter:
    """Return the routes under /api/polls that write."""
    routes = APIRouter(prefix="/api/polls", tags=["taking part"])

    @routes.put("/{poll}/report", status_code=201, responses=_RESPONSES, openapi_extra=_body(ReportBody))
    async def put_report(poll: str, request: Request, token: Token = None) -> Response:
        """Send a report to a distributed poll."""
        return await take_part(poll, request, token, distributed=True)

    @routes.put("/{poll}/ballot", status_code=201, responses=_RESPONSES, openapi_extra=_body(BallotBody))
    async def put_ballot(poll: str, request: Request, token: Token = None) -> Response:
        """Send answers to a central poll."""
        return await take_part(poll, request, token, distributed=False)

    async def take_part(name: str, request: Request, token: str | None, distributed: bool) -> Response:
        poll = service.store.polls.cached(name)
        if poll is None:
            poll = await run_in_threadpool(poll_named, service, name)
        try:
            return await store(poll, _id(token), await request.body(), distributed)
        except Refusal as refused:
            service.commits.count_refusal(name, refused.reason.value)
            raise

    async def store(poll: Poll, report: str, raw: bytes, distributed: bool) -> Response:
        if poll.distributed is not distributed:
            kind = "reports, with the noise in them" if poll.distributed else "ballots"
            raise Refusal(Reason.WRONG_PLACE, f"poll {poll.name} takes {kind}: see GET /api/polls/{poll.name}")
        read = read_sent_report if distributed else read_sent_ballot
        sent = read(raw, poll, report)
        outcome = await service.commits.put(sent)
        if outcome in _REFUSED:
            raise Refusal(Reason(outcome.value), _REFUSED[outcome])
        receipt = {
            "id": report,
            "status": outcome.value,
            "completion_code": poll.completion_code,
            "return_url": poll.return_url,
        }
        return JSONResponse(receipt, 201 if outcome is Outcome.STORED else 200)

    @routes.delete("/{poll}/participation", status_code=204, responses=documented(400, 404))
    def withdraw(poll: str, token: Token = None) -> Response:
        """Delete what was sent with a ballot token, and never accept the token again."""
        found, report = poll_named(service, poll), _id(token)
        if not service.store.participation.withdraw(found.name, report):
            raise Refusal(Reason.NOTHING_STORED, f"poll {poll} has nothing stored for this ballot token")
        return Response(status_code=204)

    return routes


def _id(token: str | None) -> str:
    if token is None:
        raise Refusal(Reason.MISSING_BALLOT, "the header Crowdveil-Ballot with the ballot token is missing")
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
        return [_written_out(part, named) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _written_out(named[schema["$ref"].rpartition("/")[2]], named)
    return {key: _written_out(part, named) for key, part in schema.items()}
