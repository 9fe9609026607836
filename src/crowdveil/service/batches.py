"""A batch from a relay: opened, checked, sorted, stored once, acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import httpx

from crowdveil.errors import Reason, Refusal
from crowdveil.protocol.relay import Acknowledgement, Batch, BatchHead, relay_terms, sealed_digest
from crowdveil.protocol.report import refusals
from crowdveil.service.poll import HostedPoll
from crowdveil.service.service import Service
from crowdveil.service.store.batches import HostKey, OpenedReport
from crowdveil.service.store.database import rows_at_once
from crowdveil.study.plain_data import canonical_json

PATIENCE_SECONDS = 10


def check_sender(service: Service, poll: HostedPoll, announced: BatchHead, signature: str | None) -> None:
    """Refuse a batch that the poll's relay did not sign, before any of it is taken in."""
    if poll.relay is None:
        raise Refusal(Reason.WRONG_PLACE, f"poll {poll.name} has no relay: devices send their reports themselves")
    announced.check_signature(_relay_key(service, poll), signature)


def take_batch(service: Service, poll: HostedPoll, batch: Batch) -> Acknowledgement:
    """Take a batch of a poll's relay. When this returns, what it says is durable; a batch that comes again is not.

    Reports that no honest device could have sent are refused one by one, and counted by reason. A batch below the
    poll's size is refused as a whole, and nothing in it is opened.
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
    try:
        answer = httpx.get(f"{url}/api/relay", timeout=PATIENCE_SECONDS)
        return str(answer.raise_for_status().json()["public_key"])
    except (httpx.HTTPError, KeyError, TypeError, ValueError):
        raise Refusal(Reason.UNAVAILABLE, f"the relay {url} cannot be asked for its key: try again") from None


def _relay_key(service: Service, poll: HostedPoll) -> str:
    """Return the relay's public key: asked for once, where the poll says that the relay is."""
    known = service.store.batches.relay_key(poll.name)
    return known or service.store.batches.pin_relay_key(poll.name, ask_relay_key(relay_terms(poll).url))


def _open(batch: Sequence[bytes], poll: HostedPoll, key: HostKey, refused: Counter[str]) -> Iterator[OpenedReport]:
    """Open sealed reports and check them together; count those that are refused, by reason."""
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
