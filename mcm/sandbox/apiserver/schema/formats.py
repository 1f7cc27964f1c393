"""String formats of OpenAPI that the API server checks."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable, Mapping
from datetime import datetime

_DATE_TIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII
)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_DURATION = re.compile(r"[-+]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h|d|w)\s*)+|0", re.ASCII)


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def check(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return check


def _is_date_time(text: str) -> bool:
    return _DATE_TIME.fullmatch(text) is not None and _parses(_instant)(text)


def _instant(text: str) -> datetime:
    # Fractions of any length are fine for the API, though not for every version of Python.
    return datetime.fromisoformat(re.sub(r"\.\d+", "", text).upper().replace("Z", "+00:00"))


def _is_date(text: str) -> bool:
    return _DATE.fullmatch(text) is not None and _parses(datetime.fromisoformat)(text)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    return True


_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "byte": _is_base64,
    "cidr": lambda text: "/" in text and _parses(lambda t: ipaddress.ip_network(t, False))(text),
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": lambda text: _DURATION.fullmatch(text) is not None,
    "ipv4": _parses(ipaddress.IPv4Address),
    "ipv6": _parses(ipaddress.IPv6Address),
    "uuid": lambda text: _UUID.fullmatch(text) is not None,
}


def conforms(text: str, name: str) -> bool:
    """Whether ``text`` is of the format; formats unknown here check nothing."""
    check = _CHECKS.get(name.replace("-", ""))
    return check is None or check(text)
