"""Where a relay hands over its batches."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Request
from starlette.concurrency import run_in_threadpool

from crowdveil.errors import Refusal
from crowdveil.protocol.relay import DIGEST_HEADER, SEALED_TYPE, SIGNATURE_HEADER, BatchHead
from crowdveil.service.api.errors import documented
from crowdveil.service.api.models import BatchAcknowledgement
from crowdveil.service.api.polls import poll_named
from crowdveil.service.batches import check_sender, take_batch
from crowdveil.service.service import Service

Digest = Annotated[str | None, Header(alias=DIGEST_HEADER, description="The body's SHA-256 (RFC 9530).")]
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
    async def put_batch(
        poll: str, batch: str, request: Request, digest: Digest = None, signature: Signature = None
    ) -> dict[str, Any]:
        """Take a batch of sealed reports, as a whole and once. The answer is sent after the commit."""
        found = await run_in_threadpool(poll_named, service, poll)
        try:
            announced = BatchHead(found.name, batch, digest or "")
            await run_in_threadpool(check_sender, service, found, announced, signature)
        except Refusal:
            async for _ in request.stream():  # Let go by, and not kept: the sender reads why when all is sent.
                pass
            raise
        read = await run_in_threadpool(announced.read, await request.body())
        acknowledged = await run_in_threadpool(take_batch, service, found, read)
        return acknowledged.as_dict()

    return routes
