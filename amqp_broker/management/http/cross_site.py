"""Requests that a browser sends for another site, which are refused.

A browser lets the page of any site send requests to this machine, with a password in the address, too. It names the
site in a header that no page can change. A site may also give its own name this machine's loopback address (DNS
rebinding); then the page is of the same origin, but the header Host has the name. Tools such as curl send none of
these headers.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Mapping
from typing import Final

from amqp_broker.management.http.answers import Refusal

# Values of Sec-Fetch-Site: the page of this broker, or a user who typed an address.
OWN_SITES: Final = ("same-origin", "none")
# Headers of browsers, of which each sends one at least with a change. Node's fetch sends Sec-Fetch-Mode alone.
OF_BROWSERS: Final = ("origin", "sec-fetch-site", "sec-fetch-dest", "sec-fetch-user", "referer", "cookie")
JSON_TYPE: Final = "application/json"
# The last two are names of a container's host in the container. HTTP/1.0 has no name.
LOCAL_NAMES: Final = ("", "localhost", "host.docker.internal", "host.containers.internal")


def check_site(headers: Mapping[str, str]) -> None:
    """Raise Refusal (403) for a request that a page of another origin has sent. Names of headers are in lower case."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        if site not in OWN_SITES:
            raise _forbidden(f"a page of another site sent this request (Sec-Fetch-Site: {site[:40]})")
        return
    # Browsers send no Sec-Fetch-Site over plain HTTP to another machine.
    origin = headers.get("origin")
    if origin is not None and _address(origin) != _address("//" + headers.get("host", "")):
        raise _forbidden(f"a page of another origin sent this request (Origin: {origin[:100]})")


def check_type(headers: Mapping[str, str]) -> None:
    """Raise Refusal (415) for a body that a browser's form could have sent. Names of headers are in lower case.

    RabbitMQ ignores the type, as libraries rely on: .NET and Node's fetch give text/plain to a text. Forms cannot send
    JSON, and scripts need the consent of the server to do so.
    """
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    if given == JSON_TYPE or not any(name in headers for name in OF_BROWSERS):
        return
    raise Refusal(415, "unsupported_media_type", f"the Content-Type of a body must be {JSON_TYPE}")


def check_host(headers: Mapping[str, str], address: str, names: Collection[str]) -> None:
    """Raise Refusal (403) for a request to a loopback address by a name that is not in `names`.

    `address` is the address that the request came to. IP addresses and localhost are always names of this machine.
    """
    if not _is_loopback(address):
        return
    host = headers.get("host", "")
    name = _address("//" + host)[0].rstrip(".")
    if not (_ip(name) is not None or name in LOCAL_NAMES or name.endswith(".localhost") or name in names):
        raise _forbidden(
            f"'{host[:100]}' is not a name of this machine; the setting management_hosts allows further names"
        )


def _forbidden(reason: str) -> Refusal:
    return Refusal(403, "forbidden", reason)


def _address(url: str) -> tuple[str, str]:
    """Return host and port of a URL; the port is empty if it is that of a scheme."""
    rest = url.lower().rpartition("//")[2]
    name, colon, port = rest.rpartition(":")
    if not colon or not port.isdigit():
        name, port = rest, ""
    return name.strip("[]"), "" if port in ("80", "443") else port


def _is_loopback(address: str) -> bool:
    found = _ip(address)
    # A client of IPv4 at a listener of IPv6 comes to ::ffff:127.0.0.1.
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return found is not None and (mapped or found).is_loopback


def _ip(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return None
