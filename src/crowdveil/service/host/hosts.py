"""Who hosts: roles, invitations, the second factor, and what everybody did."""

from __future__ import annotations

from urllib.parse import quote

from starlette.responses import Response

from crowdveil.errors import CrowdveilError
from crowdveil.service.host.chart import qr_code
from crowdveil.service.host.request import PLACE, HostRequest, Missing, minute, sentence
from crowdveil.service.store.hosts import CODE_DIGITS, Host, Role

ROLE_WORDS = {
    Role.OWNER: "everything, hosts included",
    Role.ANALYST: "look, release, download, make links",
    Role.VIEWER: "look",
}


def hosts_page(request: HostRequest) -> Response:
    """List the hosts, with the form to invite one."""
    return _hosts(request)


def invite(request: HostRequest) -> Response:
    """Invite a host, and show the link. This is the only time that it can be seen."""
    name = request.form.get("name", "").strip()
    token = request.store.hosts.invite(name, _role(request), request.pages.now())
    request.remarks.append(f"{name} as {_role(request).value}")
    return _hosts(request, invited=(name, f"{request.origin}{PLACE}/sign-in#link={token}"))


def change_role(request: HostRequest) -> Response:
    """Change what a host may do."""
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
    """Show what hosts did."""
    entries = [(minute(entry.at), entry) for entry in request.store.audit_log.latest()]
    return request.show("log.html", entries=entries)


def second_factor_page(request: HostRequest) -> Response:
    """Show how to set up one-time codes, or that they are set up."""
    return _second_factor(request, request.store.hosts.new_key())


def set_second_factor(request: HostRequest) -> Response:
    """Ask for one-time codes from now on, if the code shows that the host's device has the key."""
    key = request.form.get("key", "")
    try:
        request.store.hosts.set_second_factor(str(request.host), key, request.form.get("code", ""), request.pages.now())
    except (CrowdveilError, ValueError) as error:
        return _second_factor(request, request.store.hosts.new_key(), sentence(str(error)), 400)
    return request.go("/second-factor")


def drop_second_factor(request: HostRequest) -> Response:
    """Ask for no codes any more, if a last one is right."""
    if not request.store.hosts.check_code(str(request.host), request.form.get("code", ""), request.pages.now()):
        return _second_factor(request, "", "This is not the code of this moment, or it was used already.", 400)
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
        raise Missing(f"there is no host {request.form.get('host', '')!r}: see the list of hosts")
    return host


def _role(request: HostRequest) -> Role:
    given = request.form.get("role", "")
    if given not in list(Role):
        raise CrowdveilError(f"{given!r} is no role: choose {', '.join(Role)}")
    return Role(given)
