"""Signing in: once by a link, afterwards by a password, with a one-time code for hosts who want a second factor."""

from __future__ import annotations

from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.service.host.request import BROWSER_COOKIE, SESSION_COOKIE, HostRequest, sentence
from crowdveil.service.store.audit_log import LogEntry
from crowdveil.service.store.hosts import FIRST_HOST, LEAST_PASSWORD, SESSION_SECONDS


def sign_in_page(request: HostRequest) -> Response:
    """Show both ways to sign in."""
    return (
        request.go("/")
        if request.host
        else request.show("sign_in.html", has_password=_anybody_has_password(request), first=FIRST_HOST, wrong=None)
    )


def sign_in(request: HostRequest) -> Response:
    """Sign in with a one-time link or with the password. Wrong ones are counted, and after a few the visitor waits."""
    attempts = request.pages.attempts
    now = request.pages.now()
    wait = attempts.wait(request.address, now)
    if wait:
        minutes = -(-wait // 60)
        response = _refused(request, 429, f"There were too many wrong attempts. Try again in {minutes} minutes.")
        response.headers["Retry-After"] = str(wait)
        return response
    by_link = "link" in request.form
    if by_link:
        host = request.store.hosts.use_sign_in_link(request.form["link"].strip(), now)
    else:
        host = _by_password(request, request.form.get("name", "").strip() or FIRST_HOST, now)
    if host is None:
        attempts.failed(request.address, now)
        wrong = (
            "This link was used already, or is too old."
            if by_link
            else "Name, password and code do not belong together. (A code counts once: wait for the next.)"
        )
        return _refused(request, 403, wrong)
    if by_link:  # Whoever can start the server has lost the phone, and sets up another.
        request.store.hosts.drop_second_factor(host)
    how = "with a link" if by_link else "with a password"
    request.store.audit_log.add(LogEntry(now, host, "signed in", None, how))
    first_time = by_link and not request.store.hosts.has_password(host)
    return _start_session(request, host, "/password" if first_time else "/")


def _by_password(request: HostRequest, name: str, now: int) -> str | None:
    """Return the host whose password and code these are. Which of the two is wrong is not told."""
    hosts = request.store.hosts
    right = hosts.check_password(name, request.form.get("password", ""))
    return name if right and hosts.check_code(name, request.form.get("code", ""), now) else None


def sign_out(request: HostRequest) -> Response:
    """End the session."""
    request.store.hosts.end_session(request.secret)
    response = request.go("/sign-in")
    return request.with_cookie(response, SESSION_COOKIE, "", 0)


def password_page(request: HostRequest) -> Response:
    """Show the form for a new password."""
    return request.show("password.html", least=LEAST_PASSWORD, has_password=_has_password(request), wrong=None)


def set_password(request: HostRequest) -> Response:
    """Set the password. Every session ends, and this one goes on as a new one."""
    assert request.host is not None
    new, again = request.form.get("password", ""), request.form.get("again", "")
    try:
        if new != again:
            raise CrowdveilError("the two passwords are not the same: type the same one twice")
        request.store.hosts.set_password(request.host, new)
    except CrowdveilError as error:
        return request.show(
            "password.html", 400, least=LEAST_PASSWORD, has_password=_has_password(request), wrong=sentence(str(error))
        )
    return _start_session(request, request.host, "/")


def _start_session(request: HostRequest, host: str, then: str) -> Response:
    cookie = request.store.hosts.start_session(host, request.pages.now())
    response = request.with_cookie(request.go(then), SESSION_COOKIE, cookie, SESSION_SECONDS)
    return request.with_cookie(response, BROWSER_COOKIE, "", 0)


def _has_password(request: HostRequest) -> bool:
    return request.store.hosts.has_password(str(request.host))


def _anybody_has_password(request: HostRequest) -> bool:
    return any(host.has_password for host in request.store.hosts.all())


def _refused(request: HostRequest, status: int, why: str) -> Response:
    return request.show(
        "sign_in.html", status, has_password=_anybody_has_password(request), first=FIRST_HOST, wrong=why
    )
