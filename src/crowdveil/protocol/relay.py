"""Everything that travels through a relay: the key configuration, the sealed report, the batch, the acknowledgement.

A report is padded to one length and sealed to the host's key by HPKE (RFC 9180). Its ``info`` is the whole key
configuration: poll, study, mechanism, epsilon, relay and the terms of the promise. So a report that was sealed under
other terms, or for another poll, cannot be opened at all. The poll's address contains the fingerprint of the key
configuration, so that voters, the relay and anybody else can compare it: a relay cannot substitute its own key, and a
host cannot show one voter another key or other terms than the rest.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import random
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from crowdveil.errors import CrowdveilError, Reason, Refusal
from crowdveil.protocol.polls import LARGEST_BATCH, Poll, RelayTerms
from crowdveil.study.plain_data import canonical_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.hpke import Suite

T = TypeVar("T")

FORMAT = "crowdveil key configuration 1"
SUITE = "DHKEM(P-256, HKDF-SHA256), HKDF-SHA256, AES-128-GCM"
INFO = "crowdveil sealed report 1\n"
PADDED_LENGTH = 512
"""Length in bytes of every report before it is sealed, padded with spaces whatever its content."""
SEALED_LENGTH = 65 + PADDED_LENGTH + 16
"""Length in bytes of every sealed report: a point of the curve, the padded report, a tag."""
LARGEST_HAND_OVER = 2 * LARGEST_BATCH
"""Maximum number of reports that a relay hands over at once. It bounds what a host holds in memory."""
DIGEST_HEADER = "Content-Digest"
"""HTTP header with a batch's SHA-256 (RFC 9530), so that the signed content is known before the reports arrive."""
SIGNATURE_HEADER = "Crowdveil-Relay-Signature"
"""HTTP header with the relay's Ed25519 signature of a batch."""
SEALED_TYPE = "application/octet-stream"

_BATCH_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class KeyConfiguration:
    """A host's key for one poll, with the terms for which it is valid."""

    public_key: str
    """An uncompressed point of P-256, as base64url."""
    poll: str
    study: str
    """The study's fingerprint."""
    mechanism: str
    epsilon_micro: int
    relay: str
    """The relay's address."""
    batch: int
    delta: str
    """The number as text, in the fewest digits: the same text in all programming languages."""
    honest: str
    format: str = FORMAT
    suite: str = SUITE
    length: int = PADDED_LENGTH

    @classmethod
    def of(cls, poll: Poll, public_key: str) -> KeyConfiguration:
        """Return the configuration of a poll with a relay."""
        terms = relay_terms(poll)
        return cls(
            public_key=public_key,
            poll=poll.name,
            study=poll.study.fingerprint,
            mechanism=poll.mechanism,
            epsilon_micro=poll.levels[0].epsilon.micro,
            relay=terms.url,
            batch=terms.batch,
            delta=repr(terms.delta),
            honest=repr(terms.honest),
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the configuration as plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> KeyConfiguration:
        """Read a configuration; refuse one with another format, suite or length."""
        try:
            read = cls(**data)
        except TypeError as error:
            raise CrowdveilError(f"the key configuration cannot be read: {error}") from None
        if (read.format, read.suite, read.length) != (FORMAT, SUITE, PADDED_LENGTH):
            raise CrowdveilError(
                f"the key configuration has format {read.format!r}, suite {read.suite!r} and length {read.length}; "
                f"this version knows {FORMAT!r}, {SUITE!r} and {PADDED_LENGTH}"
            )
        _ = read._recipient
        return read

    @cached_property
    def info(self) -> bytes:
        """The bytes to which HPKE binds a sealed report."""
        return (INFO + canonical_json(self.as_dict())).encode()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of ``info``, as the 64 hexadecimal digits in the poll's address."""
        return hashlib.sha256(self.info).hexdigest()

    @cached_property
    def _recipient(self) -> Any:
        from cryptography.hazmat.primitives.asymmetric import ec

        try:
            return ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), from_base64(self.public_key))
        except ValueError as error:
            raise CrowdveilError(f"the host's public key is not a point of P-256: {error}") from None

    def seal(self, report: Mapping[str, Any]) -> bytes:
        """Seal a report to the host. Each call returns different bytes: to send again, send the same ones."""
        return _suite().encrypt(padded(report), self._recipient, info=self.info)

    def unseal(self, sealed: bytes, private_key: EllipticCurvePrivateKey) -> Any:
        """Return the content of a sealed report, unchecked; refuse one that was not sealed for this configuration."""
        from cryptography.exceptions import InvalidTag

        if len(sealed) != SEALED_LENGTH:
            raise Refusal(Reason.WRONG_SIZE, f"a sealed report has {SEALED_LENGTH} bytes, got {len(sealed)}")
        try:
            opened = _suite().decrypt(sealed, private_key, info=self.info)
        except (InvalidTag, ValueError):
            raise Refusal(Reason.UNREADABLE, "it was not sealed to this poll's key and terms") from None
        try:
            return json.loads(opened)
        except (ValueError, RecursionError):
            raise Refusal(Reason.MALFORMED, "the sealed content is not a report") from None


def relay_terms(poll: Poll) -> RelayTerms:
    """Return the terms of a poll's relay; refuse a poll without one."""
    if poll.relay is None:
        raise CrowdveilError(f"poll {poll.name} has no relay: its reports go to the host directly")
    return poll.relay


def describe_relay(configuration: KeyConfiguration, quota: int | None, opens_on: str | None) -> dict[str, Any]:
    """Describe a poll's relay to devices and to the relay itself."""
    rules = {"quota": quota, "opens_on": opens_on}
    return {"configuration": configuration.as_dict(), "fingerprint": configuration.fingerprint, **rules}


def read_relay(poll: Poll, data: Mapping[str, Any]) -> RelayTerms:
    """Read the relay from a poll's description; refuse one whose configuration does not match the poll."""
    configuration = KeyConfiguration.from_dict(data["configuration"])
    terms = RelayTerms(
        url=configuration.relay,
        batch=configuration.batch,
        delta=float(configuration.delta),
        honest=float(configuration.honest),
        public_key=configuration.public_key,
    )
    expected = KeyConfiguration.of(replace(poll, relay=terms), configuration.public_key)
    if expected != configuration or configuration.fingerprint != data["fingerprint"]:
        raise CrowdveilError(f"poll {poll.name}: the relay's key is for other terms than the poll's; do not vote in it")
    return terms


def configuration_of(poll: Poll) -> KeyConfiguration:
    """Return the key configuration of a poll that came from its server."""
    key = relay_terms(poll).public_key
    if key is None:
        raise CrowdveilError(f"poll {poll.name} comes without its host's key: ask the server for it")
    return KeyConfiguration.of(poll, key)


def check_fingerprint(poll: Poll, expected: str | None, where: str) -> None:
    """Refuse a poll unless the host's key has the expected fingerprint."""
    found = configuration_of(poll).fingerprint
    if found != expected:
        raise CrowdveilError(
            f"poll {poll.name}: the host's key has the fingerprint {found}, but {where} {expected}; do not vote in it"
        )


def address_fragment(fingerprint: str, token: str | None = None) -> str:
    """Return the part of a voter's address after the #, which no server sees."""
    return f"key={fingerprint}" + ("" if token is None else f"&ballot={token}")


# --- The report


def padded(report: Mapping[str, Any]) -> bytes:
    """Return a report as bytes of the fixed length."""
    written = canonical_json(report).encode()
    if len(written) > PADDED_LENGTH:
        raise CrowdveilError(f"a report of {len(written)} bytes does not fit into {PADDED_LENGTH}")
    return written.ljust(PADDED_LENGTH)


def new_private_key() -> EllipticCurvePrivateKey:
    """Draw a host's key for one poll."""
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def public_key_of(private_key: EllipticCurvePrivateKey) -> str:
    """Return the public key of a private key, as base64url."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return to_base64(private_key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


# --- The batch


@dataclass(frozen=True)
class Batch:
    """Sealed reports on their way from a relay to a host: of one length, in random order, and nothing else."""

    poll: str
    id: str
    """32 hexadecimal digits, drawn when the batch is formed: a batch counts once, however often it is sent."""
    sealed: tuple[bytes, ...]

    @property
    def body(self) -> bytes:
        """The bytes to send: the sealed reports, one after the other."""
        return b"".join(self.sealed)

    def headers(self, signing_key: bytes) -> dict[str, str]:
        """Return the headers: the digest of the body, and its signature with the relay's key (32 bytes)."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        announced = BatchHead(self.poll, self.id, content_digest(self.body))
        signature = Ed25519PrivateKey.from_private_bytes(signing_key).sign(announced.signed)
        return {DIGEST_HEADER: announced.digest, SIGNATURE_HEADER: to_base64(signature)}


@dataclass(frozen=True)
class BatchHead:
    """The announcement of a batch, before any of its reports is read."""

    poll: str
    id: str
    digest: str
    """The digest of the body, in the form of ``Content-Digest``."""

    def __post_init__(self) -> None:
        if not _BATCH_ID.fullmatch(self.id):
            raise Refusal(Reason.MALFORMED, "a batch is named by 32 hexadecimal digits")

    @property
    def signed(self) -> bytes:
        """The bytes that the relay signs."""
        return f"crowdveil batch 1\n{self.poll}\n{self.id}\n{self.digest}".encode()

    def check_signature(self, verifying_key: str, signature: str | None) -> None:
        """Refuse a batch that does not come from the relay with this public key."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            key = Ed25519PublicKey.from_public_bytes(from_base64(verifying_key))
            key.verify(from_base64(signature or ""), self.signed)
        except (InvalidSignature, ValueError):
            raise Refusal(
                Reason.BAD_SIGNATURE, f"this batch is not signed by the relay that poll {self.poll} names"
            ) from None

    def read(self, body: bytes) -> Batch:
        """Split a body into sealed reports; refuse a body other than the one announced."""
        if content_digest(body) != self.digest:
            raise Refusal(Reason.BAD_SIGNATURE, "the body is not the one whose digest was announced and signed")
        if len(body) % SEALED_LENGTH:
            raise Refusal(Reason.WRONG_SIZE, f"a batch is a number of sealed reports of {SEALED_LENGTH} bytes each")
        starts = range(0, len(body), SEALED_LENGTH)
        return Batch(self.poll, self.id, tuple(body[start : start + SEALED_LENGTH] for start in starts))


def content_digest(body: bytes) -> str:
    """Return the SHA-256 of a body in the form of RFC 9530."""
    return f"sha-256=:{base64.b64encode(hashlib.sha256(body).digest()).decode()}:"


def shuffled(reports: Sequence[T]) -> tuple[T, ...]:
    """Return reports in a random order, drawn by the operating system's generator."""
    order = list(reports)
    random.SystemRandom().shuffle(order)
    return tuple(order)


def new_batch_id() -> str:
    """Draw a random name for a batch."""
    return secrets.token_hex(16)


def verifying_key_of(signing_key: bytes) -> str:
    """Return the public key of a relay's signing key, as base64url."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = Ed25519PrivateKey.from_private_bytes(signing_key).public_key()
    return to_base64(public.public_bytes(Encoding.Raw, PublicFormat.Raw))


@dataclass(frozen=True)
class Acknowledgement:
    """The host's confirmation that a batch is stored, durably and once: the relay may erase it."""

    batch: str
    accepted: int
    refused: Mapping[str, int]
    """The number of refused reports for each reason."""

    def as_dict(self) -> dict[str, Any]:
        """Return the acknowledgement as plain data."""
        return {"batch": self.batch, "accepted": self.accepted, "refused": dict(self.refused)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Acknowledgement:
        """Read a host's answer."""
        try:
            return cls(str(data["batch"]), int(data["accepted"]), dict(data["refused"]))
        except (KeyError, TypeError, ValueError) as error:
            raise CrowdveilError(f"the host's acknowledgement cannot be read: {type(error).__name__}") from None


def sealed_digest(sealed: bytes) -> str:
    """Return the digest by which a host recognises a sealed report that it has seen; it reveals no content."""
    return hashlib.sha256(b"crowdveil seen\n" + sealed).hexdigest()


def to_base64(data: bytes) -> str:
    """Write bytes as base64url, without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64(text: str) -> bytes:
    """Read what ``to_base64`` wrote; raise a ValueError for anything else."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from None
    if to_base64(data) != text:
        raise ValueError("not canonical base64url")
    return data


def _suite() -> Suite:
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM
    from cryptography.hazmat.primitives.hpke import Suite as Hpke

    return Hpke(KEM.P256, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
