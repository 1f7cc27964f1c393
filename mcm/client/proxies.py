"""Which proxy to use for a server, from the environment: HTTPS_PROXY, HTTP_PROXY, NO_PROXY.

The rules are those of Go's programs, so that what works with kubectl works here: names match with
their subdomains (``.x`` only those), addresses by network, ``*`` everything; loopback is never
proxied.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def proxy_for(server: str, environ: Mapping[str, str]) -> str:
    """Return the proxy's URL for a server's URL, or an empty string for none."""
    parts = urlsplit(server)
    name = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    proxy = environ.get(name) or environ.get(name.lower()) or ""
    host = (parts.hostname or "").rstrip(".")
    if not proxy or not host or _is_loopback(host):
        return ""
    exceptions = environ.get("NO_PROXY") or environ.get("no_proxy") or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if any(_matches(e.strip().lower(), host, port) for e in exceptions.split(",")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _matches(exception: str, host: str, port: int) -> bool:
    if exception == "*":
        return True
    address = _address(host)
    if address is not None and "/" in exception:
        return _in_network(address, exception)
    exception, only_port = _split_port(exception)
    if not exception or (only_port and only_port != str(port)):
        return False
    if address is not None:
        return _address(exception) == address
    exception = exception.removeprefix("*")
    return host == exception or host.endswith("." + exception.removeprefix("."))


def _split_port(text: str) -> tuple[str, str]:
    if text.startswith("["):
        host, _, port = text[1:].partition("]")
        return host, port.removeprefix(":")
    if text.count(":") != 1:
        return text, ""
    host, _, port = text.partition(":")
    return host, port


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _in_network(address: Address, text: str) -> bool:
    try:
        return address in ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
