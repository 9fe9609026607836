"""Pages about hosts: signing in, passwords and the second factor; roles, invitations and the audit log."""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response

from crowdveil.errors import CrowdveilError, plural
from crowdveil.service.host.request import (
    BROWSER_COOKIE,
    PLACE,
    SESSION_COOKIE,
    HostRequest,
    NotFound,
    minute,
    qr_code,
    sentence,
)
from crowdveil.service.store.hosts import CODE_DIGITS, FIRST_HOST, LEAST_PASSWORD, SESSION_SECONDS, Host, LogEntry, Role

ROLE_WORDS = {
    Role.OWNER: "everything, hosts included",
    Role.ANALYST: "look, release, download, make links",
    Role.VIEWER: "look",
}


def sign_in_page(request: HostRequest) -> Response:
    """Show both ways to sign in."""
    return (
        request.go("/")
        if request.host
        else request.show("sign_in.html", has_password=_anybody_has_password(request), first=FIRST_HOST, wrong=None)
    )


def sign_in(request: HostRequest) -> Response:
    """Sign in with a one-time link or with the password. After a few wrong attempts, the visitor has to wait."""
    attempts = request.pages.attempts
    now = request.pages.now()
    wait = attempts.begin(request.address, now)
    if wait:
        return _later(wait, _refused(request, 429, _too_many(wait)))
    by_link = "link" in request.form
    if by_link:
        host = request.store.hosts.use_sign_in_link(request.form["link"].strip(), now)
    else:
        host = _by_password(request, request.form.get("name", "").strip() or FIRST_HOST, now)
    if host is None:
        wrong = (
            "This link was used already, or is too old."
            if by_link
            else "Name, password and code do not match. (A code works only once: wait for the next.)"
        )
        return _refused(request, 403, wrong)
    attempts.succeeded(request.address, now)
    if by_link:  # A host who lost the phone but can start the server may set up another one.
        request.store.hosts.drop_second_factor(host)
    how = "with a link" if by_link else "with a password"
    request.store.audit_log.add(LogEntry(now, host, "signed in", None, how))
    first_time = by_link and not request.store.hosts.has_password(host)
    return _start_session(request, host, "/password" if first_time else "/")


def _by_password(request: HostRequest, name: str, now: int) -> str | None:
    """Return the host whose password and code these are; None if either is wrong, without saying which."""
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
    """Set the password. This ends every session and starts a new one here."""
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


def _too_many(wait: int) -> str:
    minutes = -(-wait // 60)
    return f"There were too many wrong attempts. Try again in {minutes} {plural(minutes, 'minute')}."


def _later(wait: int, response: Response) -> Response:
    response.headers["Retry-After"] = str(wait)
    return response


def hosts_page(request: HostRequest) -> Response:
    """List the hosts, with the form to invite one."""
    return _hosts(request)


def invite(request: HostRequest) -> Response:
    """Invite a host, and show the link. It is shown only this once."""
    name = request.form.get("name", "").strip()
    token = request.store.hosts.invite(name, _role(request), request.pages.now())
    request.remarks.append(f"{name} as {_role(request).value}")
    return _hosts(request, invited=(name, f"{request.origin}{PLACE}/sign-in#link={token}"))


def change_role(request: HostRequest) -> Response:
    """Change the role of a host."""
    host = _known(request)
    request.store.hosts.set_role(host.name, _role(request))
    request.remarks.append(f"{host.name}: {host.role.value} to {_role(request).value}")
    return request.go("/hosts")


def remove_host(request: HostRequest) -> Response:
    """Remove a host."""
    host = _known(request)
    request.store.hosts.remove(host.name)
    request.remarks.append(host.name)
    return request.go("/hosts")


def log_page(request: HostRequest) -> Response:
    """Show the hosts' actions."""
    entries = [(minute(entry.at), entry) for entry in request.store.audit_log.latest()]
    return request.show("log.html", entries=entries)


def second_factor_page(request: HostRequest) -> Response:
    """Show how to set up one-time codes, or that they are set up."""
    return _second_factor(request, request.store.hosts.new_key())


def set_second_factor(request: HostRequest) -> Response:
    """Require one-time codes from now on, if the given code proves that the host's device has the key."""
    key = request.form.get("key", "")
    try:
        request.store.hosts.set_second_factor(str(request.host), key, request.form.get("code", ""), request.pages.now())
    except (CrowdveilError, ValueError) as error:
        return _second_factor(request, request.store.hosts.new_key(), sentence(str(error)), 400)
    return request.go("/second-factor")


def drop_second_factor(request: HostRequest) -> Response:
    """Stop requiring codes, if one last code is correct. Wrong ones count as wrong attempts to sign in."""
    now = request.pages.now()
    wait = request.pages.attempts.begin(request.address, now)
    if wait:
        return _later(wait, _second_factor(request, request.store.hosts.new_key(), _too_many(wait), 429))
    if not request.store.hosts.check_code(str(request.host), request.form.get("code", ""), now):
        return _second_factor(request, "", "This is not the code of this moment, or it was used already.", 400)
    request.pages.attempts.succeeded(request.address, now)
    request.store.hosts.drop_second_factor(str(request.host))
    return request.go("/second-factor")


def _second_factor(request: HostRequest, key: str, wrong: str | None = None, code: int = 200) -> Response:
    host = request.store.hosts.get(str(request.host))
    assert host is not None
    issuer = request.http.url.hostname or "crowdveil"
    address = f"otpauth://totp/{quote(f'crowdveil {issuer}:{host.name}')}?secret={key}&issuer={quote('crowdveil')}"
    return request.show(
        "second_factor.html",
        code,
        has_second_factor=host.has_second_factor,
        key=key,
        spoken_key=" ".join(key[start : start + 4] for start in range(0, len(key), 4)),
        picture=qr_code(address),
        digits=CODE_DIGITS,
        wrong=wrong,
    )


def _hosts(request: HostRequest, invited: tuple[str, str] | None = None) -> Response:
    hosts = request.store.hosts.all()
    return request.show("hosts.html", hosts=hosts, roles=ROLE_WORDS, invited=invited)


def _known(request: HostRequest) -> Host:
    host = request.store.hosts.get(request.form.get("host", ""))
    if host is None:
        raise NotFound(f"there is no host {request.form.get('host', '')!r}: see the list of hosts")
    return host


def _role(request: HostRequest) -> Role:
    given = request.form.get("role", "")
    if given not in list(Role):
        raise CrowdveilError(f"{given!r} is not a role: choose {', '.join(Role)}")
    return Role(given)
