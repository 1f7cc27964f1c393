"""What is needed to reach one API server: plain frozen data, made by :mod:`mcm.client.kubeconfig`
or :mod:`mcm.client.incluster`, used by :class:`mcm.client.http.HTTPTransport`.

No field that holds a secret appears in a repr.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from mcm.api.meta import JSONObject
from mcm.client.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class NoCredentials:
    """Anonymous, or by client certificate only."""


@dataclass(frozen=True, slots=True)
class StaticToken:
    """A bearer token that nobody renews. ``expires_at`` is seconds since the epoch (a JWT's
    ``exp``), None if unknown; ``remedy`` is what to tell the user once it has expired."""

    token: str = field(repr=False)
    expires_at: float | None = None
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class TokenFile:
    """A bearer token somebody else renews in a file."""

    path: str


@dataclass(frozen=True, slots=True)
class BasicAuth:
    username: str
    password: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """A credential plugin of ``client.authentication.k8s.io``.

    ``command`` is absolute, or a name looked up in PATH. ``cluster`` is what goes into
    ``spec.cluster`` if the kubeconfig asks for ``provideClusterInfo``, else None.
    """

    command: str
    api_version: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    cluster: JSONObject | None = field(default=None, repr=False)
    timeout: float = 60.0


Credentials = NoCredentials | StaticToken | TokenFile | BasicAuth | ExecPlugin


@dataclass(frozen=True, slots=True)
class TLSSpec:
    """Whom to trust and who we are. Data (PEM) wins over files; files are re-read when they change.

    Without any CA the system's roots are used. ``insecure`` switches verification off.
    """

    ca_file: str = ""
    ca_data: bytes = b""
    cert_file: str = ""
    cert_data: bytes = field(default=b"", repr=False)
    key_file: str = ""
    key_data: bytes = field(default=b"", repr=False)
    insecure: bool = False

    @property
    def configured(self) -> bool:
        """True if anything here asks for TLS: decides the scheme of a server named without."""
        return self != TLSSpec()


@dataclass(frozen=True, slots=True)
class Impersonation:
    """Act as somebody else (``Impersonate-…`` headers), with their rights instead of ours."""

    user: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class ConnectionSpec:
    """One API server as one identity. ``server`` is a URL, maybe with a path in front of
    ``/api``; ``proxy`` an HTTP proxy's URL or empty; ``namespace`` the default of the context."""

    server: str
    tls: TLSSpec = TLSSpec()
    credentials: Credentials = NoCredentials()
    impersonation: Impersonation = Impersonation()
    proxy: str = field(default="", repr=False)  # may hold a password
    tls_server_name: str = ""
    namespace: str = ""
    compression: bool = True


def check_urls(spec: ConnectionSpec) -> None:
    """Raise :class:`ConfigurationError` if server or proxy are no URLs we can use."""
    if not _usable(spec.server) or "@" in urlsplit(spec.server).netloc:
        raise ConfigurationError("the server must be a URL like https://host:6443, without a user")
    if spec.proxy and not _usable(spec.proxy):
        raise ConfigurationError("the proxy must be a URL like http://host:3128 (http or https)")


def _usable(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a broken IPv6 address
        return False
