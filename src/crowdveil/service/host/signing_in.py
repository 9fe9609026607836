"""Signing in: once by the link that ``crowdveil serve`` prints, afterwards by a password."""

from __future__ import annotations

from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.service.host.visit import SESSION_COOKIE, VISIT_COOKIE, Visit
from crowdveil.service.store.hosts import FIRST_HOST, LEAST_PASSWORD, SESSION_SECONDS


def sign_in_page(visit: Visit) -> Response:
    """Show both ways to sign in."""
    return visit.go("/") if visit.host else visit.show("sign_in.html", has_password=_has_password(visit), wrong=None)


def sign_in(visit: Visit) -> Response:
    """Sign in with a one-time link or with the password. Wrong ones are counted, and after a few the visitor waits."""
    desk, now = visit.desk, visit.desk.now()
    wait = desk.attempts.wait(visit.address, now)
    if wait:
        minutes = -(-wait // 60)
        response = _refused(visit, 429, f"There were too many wrong attempts. Try again in {minutes} minutes.")
        response.headers["Retry-After"] = str(wait)
        return response
    by_link = "link" in visit.form
    if by_link:
        host = visit.store.hosts.use_sign_in_link(visit.form["link"].strip(), now)
    else:
        right = visit.store.hosts.check_password(FIRST_HOST, visit.form.get("password", ""))
        host = FIRST_HOST if right else None
    if host is None:
        desk.attempts.failed(visit.address, now)
        wrong = "This link was used already, or is too old." if by_link else "This is not the password."
        return _refused(visit, 403, wrong)
    first_time = by_link and not visit.store.hosts.has_password(host)
    return _start_session(visit, host, "/password" if first_time else "/")


def sign_out(visit: Visit) -> Response:
    """End the session."""
    visit.store.hosts.end_session(visit.secret)
    response = visit.go("/sign-in")
    return visit.with_cookie(response, SESSION_COOKIE, "", 0)


def password_page(visit: Visit) -> Response:
    """Show the form for a new password."""
    return visit.show("password.html", least=LEAST_PASSWORD, has_password=_has_password(visit), wrong=None)


def set_password(visit: Visit) -> Response:
    """Set the password. Every session ends, and this one goes on as a new one."""
    assert visit.host is not None
    new, again = visit.form.get("password", ""), visit.form.get("again", "")
    try:
        if new != again:
            raise CrowdveilError("the two passwords are not the same: type the same one twice")
        visit.store.hosts.set_password(visit.host, new)
    except CrowdveilError as error:
        wrong = str(error)
        return visit.show(
            "password.html", 400, least=LEAST_PASSWORD, has_password=_has_password(visit), wrong=_sentence(wrong)
        )
    return _start_session(visit, visit.host, "/")


def _start_session(visit: Visit, host: str, then: str) -> Response:
    cookie = visit.store.hosts.start_session(host, visit.desk.now())
    response = visit.with_cookie(visit.go(then), SESSION_COOKIE, cookie, SESSION_SECONDS)
    return visit.with_cookie(response, VISIT_COOKIE, "", 0)


def _has_password(visit: Visit) -> bool:
    return visit.store.hosts.has_password(visit.host or FIRST_HOST)


def _refused(visit: Visit, status: int, why: str) -> Response:
    return visit.show("sign_in.html", status, has_password=_has_password(visit), wrong=why)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
