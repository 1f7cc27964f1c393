from __future__ import annotations

import errno
import ssl
from typing import Any

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey
from yarl import URL

from mcm.client.errors import (
    ConnectionRefused,
    ConnectTimeout,
    NameResolutionError,
    NotSent,
    RequestTimeout,
    TLSError,
    TransportError,
)
from mcm.client.failures import Route, translate

ROUTE = Route.to("https://user:pw@api.example:6443/prefix", "http://me:pw@proxy:3128")
KEY = ConnectionKey("api.example", 6443, True, True, None, None, None)


def verification(code: int, message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] …")
    error.verify_code, error.verify_message = code, message
    return error


def tls(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] …")
    error.reason = reason
    return error


def caused(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


REFUSED = OSError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 6443)")


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (
            aiohttp.ClientConnectorError(KEY, REFUSED),
            ConnectionRefused,
            "cannot reach https://api.example:6443: connection refused",
        ),
        (
            aiohttp.ClientConnectorError(KEY, OSError(errno.EHOSTUNREACH, "x")),
            ConnectionRefused,
            "cannot reach https://api.example:6443: no route to host",
        ),
        (
            aiohttp.ClientProxyConnectionError(KEY, REFUSED),
            ConnectionRefused,
            "cannot reach proxy http://proxy:3128: connection refused",
        ),
        (
            aiohttp.ClientConnectorDNSError(KEY, OSError(-2, "Name or service not known")),
            NameResolutionError,
            "cannot resolve 'api.example' (for https://api.example:6443)",
        ),
        (
            aiohttp.ConnectionTimeoutError("secret"),
            ConnectTimeout,
            "cannot reach https://api.example:6443: no connection in time",
        ),
        (
            aiohttp.SocketTimeoutError("secret"),
            RequestTimeout,
            "https://api.example:6443 was silent for too long",
        ),
        (
            aiohttp.ServerDisconnectedError("secret"),
            TransportError,
            "lost the connection to https://api.example:6443: closed by the peer",
        ),
        (
            aiohttp.ClientOSError(errno.ECONNRESET, "secret"),
            TransportError,
            "lost the connection to https://api.example:6443: connection reset by peer",
        ),
        (
            caused(aiohttp.ClientConnectionError(), ConnectionResetError(errno.EPIPE, "secret")),
            TransportError,
            "lost the connection to https://api.example:6443: broken pipe",
        ),
        (
            aiohttp.ClientPayloadError("secret"),
            TransportError,
            "lost the connection to https://api.example:6443: closed by the peer",
        ),
        (
            aiohttp.ClientConnectorCertificateError(KEY, verification(19, "self-signed")),
            TLSError,
            (
                "the certificate of https://api.example:6443 is signed by an unknown authority;"
                " check the cluster's certificate-authority"
            ),
        ),
        (
            aiohttp.ClientConnectorCertificateError(KEY, verification(62, "Hostname mismatch")),
            TLSError,
            (
                "the certificate of https://api.example:6443 is made out to another name"
                " (Hostname mismatch); check the address, or set tls-server-name"
            ),
        ),
        (
            aiohttp.ClientConnectorCertificateError(KEY, verification(10, "expired")),
            TLSError,
            (
                "the certificate of https://api.example:6443 is expired; renew it, or check this"
                " machine's clock"
            ),
        ),
        (
            aiohttp.ClientConnectorSSLError(KEY, tls("WRONG_VERSION_NUMBER")),
            TLSError,
            "https://api.example:6443 does not speak TLS there; is the port right?",
        ),
        (
            caused(aiohttp.ClientConnectionError(), tls("TLSV13_ALERT_CERTIFICATE_REQUIRED")),
            TLSError,
            (
                "https://api.example:6443 refused our client certificate"
                " (tlsv13_alert_certificate_required)"
            ),
        ),
        (
            aiohttp.ClientConnectorSSLError(KEY, tls("NO_PROTOCOLS_AVAILABLE")),
            TLSError,
            "no TLS with https://api.example:6443: no_protocols_available",
        ),
    ],
)
def test_texts_name_server_and_cause(
    error: Exception, kind: type[TransportError], text: str
) -> None:
    translated = translate(error, ROUTE)
    assert (type(translated), str(translated)) == (kind, text)


def test_headers_in_the_originals_do_not_get_through() -> None:
    headers: Any = {"Authorization": "Bearer s3ntinel"}
    info = aiohttp.RequestInfo(URL("http://x"), "CONNECT", headers, URL("http://x"))
    original = aiohttp.ClientHttpProxyError(info, (), status=407, message="s3ntinel")
    error = translate(original, ROUTE)
    assert isinstance(error, NotSent)
    assert str(error) == "proxy http://proxy:3128 refused to connect us: HTTP 407"
    assert "s3ntinel" not in repr(error) and "pw" not in str(error)


def test_an_ipv6_server_is_written_in_brackets() -> None:
    assert Route.to("https://[fd00::1]:443/").server == "https://[fd00::1]:443"
