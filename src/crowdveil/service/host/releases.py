"""Making releases, looking at them, and comparing two of them."""

from __future__ import annotations

import re

from markupsafe import Markup
from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.pages.plain_words import mechanism_words
from crowdveil.pages.reading import decimals, expected_error_bar_sentence, readings
from crowdveil.pages.sections import ReleaseView, sections
from crowdveil.privacy.epsilon import Epsilon
from crowdveil.releases import Release
from crowdveil.service.host.comparison import compared
from crowdveil.service.host.people import attachment
from crowdveil.service.host.visit import Missing, Visit
from crowdveil.service.poll import Poll
from crowdveil.service.releasing import dry_run, make_release
from crowdveil.service.store.releases import StoredRelease


def releases_page(visit: Visit) -> Response:
    """List a poll's releases and what they cost, with the form for a new one."""
    standing = visit.standing()
    name = standing.poll.name
    return visit.show(
        "releases.html",
        poll=standing.poll,
        tab="releases",
        standing=standing,
        made=[(stored, stored.read()) for stored in visit.store.releases.all(name)],
        account=visit.store.releases.account(name),
    )


def look_first(visit: Visit) -> Response:
    """Show what a release would cost and tell. Nothing is spent."""
    poll = visit.standing().poll
    epsilon = _epsilon(poll, visit.form.get("epsilon", ""))
    looked = dry_run(visit.store, poll.name, epsilon)
    return visit.show(
        "dry_run.html",
        poll=poll,
        tab="releases",
        epsilon=epsilon,
        looked=looked,
        spent=_spent(visit, poll),
        account=visit.store.releases.account(poll.name),
        mechanism=mechanism_words(poll.mechanism),
        error_bar=expected_error_bar_sentence(looked.noise, poll.settings.robust),
    )


def release(visit: Visit) -> Response:
    """Make the release that was looked at. A form that is sent twice makes one release, and pays for one."""
    poll = visit.standing().poll
    epsilon = _epsilon(poll, visit.form.get("epsilon", ""))
    with visit.desk.one_release:
        if visit.form.get("spent", "") != _spent(visit, poll):
            raise CrowdveilError(
                f"another release of poll {poll.name} was made in the meantime, and this one was not: "
                "see the list of releases, and look again at what a new one would cost"
            )
        made = make_release(visit.store, poll.name, visit.desk.today(), epsilon)
    return visit.go(f"/releases/{made.id}")


def release_page(visit: Visit) -> Response:
    """Show a release: its picture with error bars and its table, what it promises, where it is from."""
    stored = _stored(visit, visit.path("release"))
    made = stored.read()
    return visit.show(
        "release.html", stored=stored, release=made, body=_parts(made), tab="releases", poll=_poll(visit, stored)
    )


def release_file(visit: Visit) -> Response:
    """Send the release file."""
    stored = _stored(visit, visit.path("release"))
    return attachment(stored.file, f"{stored.poll}-release-{stored.id[:8]}.json", "application/json")


def compare_page(visit: Visit) -> Response:
    """Show two releases of one poll side by side."""
    poll = visit.standing().poll
    first, second = (_stored(visit, visit.request.query_params.get(which, "")) for which in ("first", "second"))
    if {first.poll, second.poll} != {poll.name}:
        raise CrowdveilError(f"choose two releases of poll {poll.name}")
    one, other = first.read(), second.read()
    return visit.show(
        "compare.html",
        poll=poll,
        tab="releases",
        first=(first, one),
        second=(second, other),
        rows=compared(one, other),
        places=max(decimals(readings(one)), decimals(readings(other))),
    )


def presented(html: str) -> Markup:
    """Turn the style attributes of a drawing into attributes of its own.

    They mean the same to SVG, and the page's Content-Security-Policy allows no style inside the page. Words from files
    are escaped in these parts, so that what looks like a style attribute is one.
    """
    return Markup(_STYLE.sub(_as_attributes, html))


_STYLE = re.compile(r' style="([^"]*)"')


def _as_attributes(match: re.Match[str]) -> str:
    pairs = (part.split(":", 1) for part in match[1].split(";") if part.strip())
    return "".join(f' {name.strip()}="{value.strip()}"' for name, value in pairs)


def _parts(made: Release) -> Markup:
    return presented(sections(ReleaseView(made, "release", None, f"release-{made.digest[:8]}.json"), level=2))


def _poll(visit: Visit, stored: StoredRelease) -> Poll:
    return visit.store.polls.known(stored.poll)


def _stored(visit: Visit, id: str) -> StoredRelease:
    found = visit.store.releases.get(id)
    if found is None:
        raise Missing(f"there is no release {id!r}: see the list of a poll's releases")
    return found


def _epsilon(poll: Poll, given: str) -> Epsilon | None:
    return None if poll.distributed else Epsilon(given.strip())


def _spent(visit: Visit, poll: Poll) -> str:
    """Say what has been spent so far, by which a form knows whether it is still the newest."""
    account = visit.store.releases.account(poll.name)
    return "" if account is None else str(account.spent_micro)
