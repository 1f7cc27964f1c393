"""The entries of a kubeconfig, and what a user entry means for credentials.

Field names and rules: the Kubernetes reference, "kubeconfig (v1)". What kubectl would refuse or we
cannot do is refused with the remedy; nothing is ignored that would change whose rights are used.
"""

from __future__ import annotations

import base64
import binascii
import os
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mcm.api.meta import JSONObject
from mcm.client.connection import (
    BasicAuth,
    Credentials,
    ExecPlugin,
    Impersonation,
    NoCredentials,
    StaticToken,
    TokenFile,
)
from mcm.client.credentials import bearer
from mcm.client.errors import ConfigurationError, CredentialsError
from mcm.client.execplugin import API_VERSIONS

_EXEC_EXTENSION = "client.authentication.k8s.io/exec"
_OIDC_REMEDY = "log in again, or use an exec plugin such as kubelogin (kubectl oidc-login)"


class _Entry(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    pass


class _NamedExtension(msgspec.Struct, frozen=True):
    name: str
    extension: object = None


class ContextEntry(_Entry, frozen=True, kw_only=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class ClusterEntry(_Entry, frozen=True, kw_only=True):
    server: str = ""
    certificate_authority: str = ""
    ca_data: str = msgspec.field(name="certificate-authority-data", default="")
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: tuple[_NamedExtension, ...] = ()


class _ExecVariable(msgspec.Struct, frozen=True):
    name: str = ""
    value: str = ""


class ExecEntry(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    command: str = ""
    api_version: str = ""
    args: tuple[str, ...] | None = None
    env: tuple[_ExecVariable, ...] | None = None
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class AuthProviderEntry(msgspec.Struct, frozen=True):
    name: str = ""
    config: dict[str, str] | None = None


class UserEntry(_Entry, frozen=True, kw_only=True):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(name="tokenFile", default="")
    username: str = ""
    password: str = ""
    as_user: str = msgspec.field(name="as", default="")
    as_uid: str = ""
    as_groups: tuple[str, ...] | None = None
    as_user_extra: dict[str, tuple[str, ...]] | None = None
    auth_provider: AuthProviderEntry | None = None
    exec: ExecEntry | None = None

    def __repr__(self) -> str:
        return f"UserEntry(methods={self.methods})"

    @property
    def has_certificate(self) -> bool:
        return bool(self.client_certificate or self.client_certificate_data)

    @property
    def methods(self) -> tuple[str, ...]:
        """Return what the entry offers beside a client certificate."""
        present = {
            "token": self.token or self.token_file,
            "username": self.username or self.password,
            "auth-provider": self.auth_provider,
            "exec": self.exec,
        }
        return tuple(name for name, value in present.items() if value)


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an entry stands: a name for texts, and the folder its paths are relative to."""

    name: str
    folder: Path

    def __str__(self) -> str:
        return self.name

    def path(self, text: str) -> str:
        """Return a path of the entry as seen from here; empty stays empty."""
        return os.path.normpath(self.folder / text) if text else ""

    def data(self, text: str, name: str) -> bytes:
        """Decode a ``…-data`` field. Raises :class:`ConfigurationError`, without the value.

        Strictly: a lenient decoder makes nothing of garbage, and no CA means other CAs.
        """
        try:
            return base64.b64decode("".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            raise ConfigurationError(f"{self}: {name} is not base64") from None


def check(user: UserEntry, origin: Origin) -> None:
    """Refuse what is ambiguous. Raises :class:`ConfigurationError`."""
    if len(user.methods) > 1:
        found = " and ".join(user.methods)
        raise ConfigurationError(f"{origin}: {found} exclude each other; keep one")
    if not user.as_user and (user.as_uid or user.as_groups or user.as_user_extra):
        raise ConfigurationError(f"{origin}: as-uid, as-groups and as-user-extra need as")


def impersonation(user: UserEntry) -> Impersonation:
    extra = tuple((user.as_user_extra or {}).items())
    return Impersonation(user.as_user, user.as_uid, user.as_groups or (), extra)


def credentials(
    user: UserEntry, origin: Origin, cluster: ClusterEntry, cluster_at: Origin
) -> Credentials:
    """Return what the user entry says. Raises :class:`ConfigurationError`."""
    if user.exec is not None:
        return _exec(user.exec, origin, cluster, cluster_at)
    if user.auth_provider is not None:
        return _auth_provider(user.auth_provider, origin)
    if user.token_file:  # wins over a token beside it, which is but its last known content
        return TokenFile(origin.path(user.token_file))
    if user.token:
        return StaticToken(_checked(user.token, origin))
    if user.username or user.password:
        return BasicAuth(user.username, user.password)
    return NoCredentials()


def _exec(
    entry: ExecEntry, origin: Origin, cluster: ClusterEntry, cluster_at: Origin
) -> ExecPlugin:
    if not entry.command:
        raise ConfigurationError(f"{origin}: exec has no command")
    if entry.api_version not in API_VERSIONS:
        raise ConfigurationError(
            f"{origin}: exec apiVersion {entry.api_version!r} is not known;"
            f" expected {' or '.join(API_VERSIONS)}"
        )
    if entry.interactive_mode == "Always":
        raise ConfigurationError(
            f"{origin}: exec wants a terminal (interactiveMode Always), and there is none"
        )
    info = _cluster_info(cluster, cluster_at) if entry.provide_cluster_info else None
    return ExecPlugin(
        command=_command(entry.command, origin),
        api_version=entry.api_version,
        args=entry.args or (),
        env=tuple((v.name, v.value) for v in entry.env or ()),
        install_hint=entry.install_hint,
        cluster=info,
    )


def _command(command: str, origin: Origin) -> str:
    """A bare name is looked up in PATH; a path is relative to the file."""
    return origin.path(command) if "/" in command else command


def _cluster_info(cluster: ClusterEntry, origin: Origin) -> JSONObject:
    """Return ``spec.cluster`` of the plugin's input; CA files are passed as data."""
    authority = origin.data(cluster.ca_data, "certificate-authority-data")
    if not authority and cluster.certificate_authority:
        authority = _content(origin.path(cluster.certificate_authority), origin)
    fields: JSONObject = {
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority).decode(),
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": next(
            (e.extension for e in cluster.extensions if e.name == _EXEC_EXTENSION), None
        ),
    }
    return {name: value for name, value in fields.items() if value}


def _content(path: str, origin: Origin) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"{origin}: cannot read {path}: {error.strerror}") from None


def _auth_provider(entry: AuthProviderEntry, origin: Origin) -> StaticToken:
    """Use an OIDC id-token for as long as it is valid; the providers themselves are history."""
    if entry.name != "oidc":
        raise ConfigurationError(
            f"{origin}: auth-provider {entry.name!r} was removed from Kubernetes clients;"
            " use an exec plugin (gke-gcloud-auth-plugin, kubelogin)"
        )
    token = (entry.config or {}).get("id-token", "")
    if not token:
        raise ConfigurationError(f"{origin}: auth-provider oidc has no id-token; {_OIDC_REMEDY}")
    expires_at = _jwt_expiry(token, origin)
    return StaticToken(_checked(token, origin), expires_at, f"{origin}: {_OIDC_REMEDY}")


class _Claims(msgspec.Struct, frozen=True):
    exp: float | None = None


def _jwt_expiry(token: str, origin: Origin) -> float | None:
    """Return when a JWT expires, in seconds since the epoch. The signature is the server's to
    check."""
    parts = token.split(".")
    try:
        if len(parts) != 3:
            raise ValueError("not three parts")
        payload = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        return msgspec.json.decode(payload, type=_Claims).exp
    except (ValueError, msgspec.DecodeError):
        raise ConfigurationError(f"{origin}: id-token is no JWT; {_OIDC_REMEDY}") from None


def _checked(token: str, origin: Origin) -> str:
    try:
        bearer(token, origin="token")
    except CredentialsError as error:
        raise ConfigurationError(f"{origin}: {error}") from None
    return token.strip()
