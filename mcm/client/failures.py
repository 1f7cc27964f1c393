"""From what aiohttp, OpenSSL and the system raise to our errors, in words a user can act on.

Texts name the server and the cause. They are made here from parts: the originals' texts and reprs
may hold request headers, and with them tokens.
"""

from __future__ import annotations

import errno
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import aiohttp

from mcm.client.errors import (
    ConnectionRefused,
    ConnectTimeout,
    NameResolutionError,
    NotSent,
    RequestTimeout,
    TLSError,
    TransportError,
)

CARRIER_ERRORS = (aiohttp.ClientError, OSError, ssl.SSLError, TimeoutError)
"""What sending and reading may raise for reasons outside our program."""

# OpenSSL's X509_V_ERR_… numbers.
_UNKNOWN_AUTHORITY = frozenset({18, 19, 20, 21})
_NOT_YET_VALID, _EXPIRED = 9, 10
_WRONG_NAME = frozenset({62, 64})


@dataclass(frozen=True, slots=True)
class Route:
    """Where requests go, in a form fit for texts: without user, password and path."""

    server: str
    proxy: str = ""

    @classmethod
    def to(cls, server: str, proxy: str = "") -> Route:
        return cls(_bare(server), _bare(proxy) if proxy else "")


def translate(error: BaseException, route: Route) -> TransportError:
    """Return our error for one of :data:`CARRIER_ERRORS`; it keeps no reference to the original."""
    match error:
        case TransportError():
            return error
        case aiohttp.ClientConnectorCertificateError():
            return _certificate_failure(error.certificate_error, route)
        case aiohttp.ClientConnectorDNSError():
            return NameResolutionError(f"cannot resolve {error.host!r} (for {route.server})")
        case aiohttp.ConnectionTimeoutError():
            return ConnectTimeout(f"cannot reach {route.server}: no connection in time")
        case aiohttp.ClientHttpProxyError():
            return NotSent(f"proxy {route.proxy} refused to connect us: HTTP {error.status}")
    if (tls := _tls_error(error)) is not None:
        return _handshake_failure(tls, route)
    return _broken(error, route)


def _broken(error: BaseException, route: Route) -> TransportError:
    match error:
        case aiohttp.ClientProxyConnectionError():
            return ConnectionRefused(f"cannot reach proxy {route.proxy}: {_cause(error)}")
        case aiohttp.ClientConnectorError():
            return ConnectionRefused(f"cannot reach {route.server}: {_cause(error)}")
        case TimeoutError():
            return RequestTimeout(f"{route.server} was silent for too long")
        case aiohttp.ClientResponseError():
            return TransportError(f"{route.server} did not answer in HTTP")
        case _:
            return TransportError(f"lost the connection to {route.server}: {_cause(error)}")


def _certificate_failure(error: BaseException, route: Route) -> TLSError:
    code = getattr(error, "verify_code", 0)
    said = getattr(error, "verify_message", "") or "verification failed"
    if code in _UNKNOWN_AUTHORITY:
        why = "signed by an unknown authority; check the cluster's certificate-authority"
    elif code in _WRONG_NAME:
        why = f"made out to another name ({said}); check the address, or set tls-server-name"
    elif code == _EXPIRED:
        why = "expired; renew it, or check this machine's clock"
    elif code == _NOT_YET_VALID:
        why = "not valid yet; check this machine's clock"
    else:
        why = f"not acceptable: {said}"
    return TLSError(f"the certificate of {route.server} is {why}")


def _handshake_failure(error: ssl.SSLError, route: Route) -> TransportError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_failure(error, route)
    reason = getattr(error, "reason", None) or ""  # unset on errors not made by OpenSSL
    if reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"):
        return TLSError(f"{route.server} does not speak TLS there; is the port right?")
    if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason):
        return TLSError(f"{route.server} refused our client certificate ({reason.lower()})")
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return TransportError(f"lost the connection to {route.server}: closed by the peer")
    return TLSError(f"no TLS with {route.server}: {reason.lower() or 'handshake failed'}")


def _tls_error(error: BaseException) -> ssl.SSLError | None:
    """Find OpenSSL's own error; aiohttp's wrappers are SSLErrors too, but without a reason."""
    wrapped = (e for e in _chain(error) if not isinstance(e, aiohttp.ClientError))
    return next((e for e in wrapped if isinstance(e, ssl.SSLError)), None)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what it wraps: by cause, or as aiohttp's ``os_error``."""
    seen: BaseException | None = error
    for _ in range(5):
        if seen is None:
            return
        yield seen
        seen = getattr(seen, "os_error", None) or seen.__cause__


def _cause(error: BaseException) -> str:
    number = next((e.errno for e in _chain(error) if isinstance(e, OSError) and e.errno), None)
    if number is not None and number in errno.errorcode:
        return os.strerror(number).lower()
    if isinstance(error, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError):
        return "closed by the peer"
    return "broken off"


def _bare(url: str) -> str:
    parts = urlsplit(url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    return f"{parts.scheme}://{host}:{parts.port}" if parts.port else f"{parts.scheme}://{host}"
