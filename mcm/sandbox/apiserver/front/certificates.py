"""What clients need to trust a sandbox, and to be trusted: its CA, its certificate, a token.

Everything lies in one folder and outlives a run, so that a kubeconfig written once stays good.
Private keys and the token can be read by their owner only.
"""

from __future__ import annotations

import os
import secrets
import ssl
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self, final

import trustme
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import NameOID

from mcm.client.errors import ConfigurationError
from mcm.clock import Clock, SystemClock
from mcm.sandbox.apiserver.front.private_files import write_private

_CA_REPLACED_AFTER = timedelta(days=3285)
_CERTIFICATE_LIFE = timedelta(days=365)
_RENEW_BEFORE = timedelta(days=30)
_CLOCK_SKEW = timedelta(minutes=5)

_CA_CERTIFICATE, _CA_KEY = "ca.crt", "ca.key"
_CERTIFICATE, _KEY, _TOKEN = "tls.crt", "tls.key", "token"

_ORGANIZATION = "mcm sandbox"
_CA_UNIT = "CA of "
_NAMES = ("localhost", "127.0.0.1", "::1")


@final
@dataclass(frozen=True, slots=True)
class Certificates:
    """``ca`` is the CA certificate in PEM, ``token`` the one bearer token the sandbox accepts."""

    folder: Path
    ca: bytes
    token: str = field(repr=False)

    @classmethod
    def load_or_create(cls, folder: Path, *, clock: Clock | None = None) -> Self:
        """Use what ``folder`` holds, and make what is missing or about to expire.

        Raises:
            ConfigurationError: the folder cannot be used, or a file in it is damaged.
        """
        now = (clock or SystemClock()).now()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            authority = _load_authority(folder, now) or _create_authority(folder, now)
            if not _is_current(folder, authority, now):
                _issue(folder, authority, now)
            return cls(folder, authority.cert_pem.bytes(), _token(folder))
        except OSError as error:
            raise ConfigurationError(
                f"cannot keep the sandbox's certificates in {folder}: {error.strerror or error}"
            ) from error
        except ValueError as error:
            raise ConfigurationError(
                f"a certificate or key in {folder} is damaged ({error}); delete that folder, "
                "and the sandbox makes new ones"
            ) from error

    def server_context(self) -> ssl.SSLContext:
        """Return the TLS settings of the server: HTTP/1.1, TLS 1.2 or newer."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.folder / _CERTIFICATE, self.folder / _KEY)
        context.set_alpn_protocols(["http/1.1"])
        return context


def _token(folder: Path) -> str:
    path = folder / _TOKEN
    if path.exists() and (token := path.read_text().strip()):
        os.chmod(path, 0o600)
        return token
    token = secrets.token_urlsafe(32)
    write_private(path, token.encode())
    return token


def _load_authority(folder: Path, now: datetime) -> trustme.CA | None:
    """Read the CA; None if there is none, or it is old: it could sign for ever."""
    if not (folder / _CA_CERTIFICATE).exists() or not (folder / _CA_KEY).exists():
        return None
    pem = (folder / _CA_CERTIFICATE).read_bytes()
    authority = trustme.CA.from_pem(pem, _read_key(folder / _CA_KEY))
    born = _birth(x509.load_pem_x509_certificate(pem))
    return authority if born is not None and now - born < _CA_REPLACED_AFTER else None


def _create_authority(folder: Path, now: datetime) -> trustme.CA:
    authority = trustme.CA(
        path_length=0,
        organization_name=_ORGANIZATION,
        organization_unit_name=f"{_CA_UNIT}{now.isoformat(timespec='seconds')}",
    )
    write_private(folder / _CA_KEY, authority.private_key_pem.bytes())
    write_private(folder / _CA_CERTIFICATE, authority.cert_pem.bytes())
    return authority


def _birth(certificate: x509.Certificate) -> datetime | None:
    """When the CA was made; its validity does not say, its name does. None for another's CA."""
    units = certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATIONAL_UNIT_NAME)
    unit = str(units[0].value) if units else ""
    return datetime.fromisoformat(unit.removeprefix(_CA_UNIT)) if _CA_UNIT in unit else None


def _issue(folder: Path, authority: trustme.CA, now: datetime) -> None:
    """Make the server's certificate and key."""
    issued = authority.issue_cert(
        *_NAMES,
        organization_name=_ORGANIZATION,
        organization_unit_name="API server",
        not_before=now - _CLOCK_SKEW,
        not_after=now + _CERTIFICATE_LIFE,
    )
    write_private(folder / _KEY, issued.private_key_pem.bytes())
    write_private(folder / _CERTIFICATE, issued.cert_chain_pems[0].bytes())


def _is_current(folder: Path, authority: trustme.CA, now: datetime) -> bool:
    """Whether a serving certificate is there that the CA signed and that lasts a while."""
    if not (folder / _CERTIFICATE).exists() or not (folder / _KEY).exists():
        return False
    certificate = x509.load_pem_x509_certificate((folder / _CERTIFICATE).read_bytes())
    key = load_pem_private_key(_read_key(folder / _KEY), password=None)
    if certificate.public_key() != key.public_key():
        return False
    try:
        certificate.verify_directly_issued_by(
            x509.load_pem_x509_certificate(authority.cert_pem.bytes())
        )
    except Exception:  # the library raises three kinds; all of them mean "not of this CA"
        return False
    return certificate.not_valid_after_utc - now > _RENEW_BEFORE


def _read_key(path: Path) -> bytes:
    os.chmod(path, 0o600)  # whoever copied the folder may have opened it
    return path.read_bytes()
