"""What is needed to reach one API server: plain frozen data.

Made by :mod:`mcm.client.kubeconfig` or :mod:`mcm.client.incluster`, used by
:class:`mcm.client.http.HTTPTransport`. No field that holds a secret appears in a repr.
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
    def identified(self) -> bool:
        """True if there is a client certificate."""
        return bool(self.cert_data or self.cert_file)

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
    ``/api``; ``proxy`` an HTTP proxy's URL or empty; ``namespace`` the default of the context.

    ``cluster_entry`` and ``user_entry`` say where server and credentials were read, for texts.
    """

    server: str
    tls: TLSSpec = TLSSpec()
    credentials: Credentials = NoCredentials()
    impersonation: Impersonation = Impersonation()
    proxy: str = field(default="", repr=False)  # may hold a password
    tls_server_name: str = ""
    namespace: str = ""
    compression: bool = True
    cluster_entry: str = field(default="", compare=False)
    user_entry: str = field(default="", compare=False)

    @property
    def login(self) -> str:
        """What we say who we are with, and where that stands; empty if we do not say."""
        match self.credentials:
            case StaticToken():
                what = "the token"
            case TokenFile(path):
                what = f"the token in {path}"
            case BasicAuth():
                what = "name and password"
            case ExecPlugin():
                what = f"what the plugin {self.credentials.command} gives"
            case _:  # NoCredentials
                what = "the client certificate" if self.tls.identified else ""
        return f"{what} of {self.user_entry}" if what and self.user_entry else what

    def refusal(self, server: str) -> str:
        """Return what to tell a user whom ``server`` (its name for texts) did not let in."""
        where = f"{server} ({self.cluster_entry})" if self.cluster_entry else server
        if not self.login:
            whose = self.user_entry or "this connection"
            return f"{where} wants credentials, and {whose} has none; give it a token or another"
        remedy = "log in again" if isinstance(self.credentials, ExecPlugin) else "renew it there"
        return (
            f"{where} does not accept {self.login}: it is wrong, expired or meant for another"
            f" cluster; {remedy}, or choose another user or context"
        )


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
