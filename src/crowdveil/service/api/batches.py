"""Where a relay hands over its batches."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.concurrency import run_in_threadpool

from crowdveil.errors import Reason, Refusal
from crowdveil.protocol.relay import SEALED_LENGTH, SEALED_TYPE, SIGNATURE_HEADER, Batch
from crowdveil.service.api.errors import documented
from crowdveil.service.api.models import BatchAcknowledgement
from crowdveil.service.api.polls import poll_named
from crowdveil.service.batches import take_batch
from crowdveil.service.poll import HostedPoll
from crowdveil.service.service import Service

Signature = Annotated[str | None, Header(alias=SIGNATURE_HEADER, description="The relay's Ed25519 signature.")]
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "Sealed reports of one length, one after the other, in random order.",
        "content": {SEALED_TYPE: {"schema": {"type": "string", "format": "binary"}}},
    }
}


def batch_routes(service: Service) -> APIRouter:
    """Return the route under /api/polls that a relay writes to."""
    routes = APIRouter(prefix="/api/polls", tags=["relay"])

    @routes.put(
        "/{poll}/batches/{batch}",
        response_model=BatchAcknowledgement,
        responses=documented(403, 404, 409),
        openapi_extra=_BODY,
    )
    async def put_batch(poll: str, batch: str, request: Request, signature: Signature = None) -> dict[str, Any]:
        """Take a batch of sealed reports, as a whole and once. The answer is sent after the commit."""
        found = await run_in_threadpool(poll_named, service, poll)
        read = Batch.read(found.name, batch, await _body_for(found, request))
        acknowledged = await run_in_threadpool(take_batch, service, found, read, signature)
        return acknowledged.as_dict()

    return routes


async def _body_for(poll: HostedPoll, request: Request) -> bytes:
    """Read no more than this poll's relay ever hands over at once; nothing at all where there is no relay."""
    if poll.relay is None:
        raise Refusal(Reason.WRONG_PLACE, f"poll {poll.name} has no relay: devices send their reports themselves")
    largest, parts, read = (2 * poll.relay.batch - 1) * SEALED_LENGTH, [], 0
    async for part in request.stream():
        read += len(part)
        if read > largest:
            raise Refusal(Reason.TOO_LARGE, f"a batch of poll {poll.name} has at most {largest} bytes")
        parts.append(part)
    return b"".join(parts)
