"""What clients need to trust a sandbox, and to be trusted: its CA, its certificate, a token.

Everything lies in one folder and outlives a run, so that a kubeconfig written once stays good.
Private keys and the token can be read by their owner only.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import ssl
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self, final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mcm.client.errors import ConfigurationError
from mcm.clock import Clock, SystemClock
from mcm.sandbox.apiserver.front.private_files import write_private

_CA_LIFE = timedelta(days=3650)
_SERVING_LIFE = timedelta(days=365)
_RENEW_BEFORE = timedelta(days=30)
_CLOCK_SKEW = timedelta(minutes=5)

_CA_CERTIFICATE, _CA_KEY = "ca.crt", "ca.key"
_CERTIFICATE, _KEY, _TOKEN = "tls.crt", "tls.key", "token"

_NAMES: tuple[x509.GeneralName, ...] = (
    x509.DNSName("localhost"),
    x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    x509.IPAddress(ipaddress.ip_address("::1")),
)


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
            authority = _Authority.load(folder, now) or _Authority.create(folder, now)
            if not _is_current(folder, authority, now):
                authority.issue(folder, now)
            return cls(folder, authority.pem, _token(folder))
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


@final
@dataclass(frozen=True, slots=True)
class _Authority:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @classmethod
    def load(cls, folder: Path, now: datetime) -> Self | None:
        """Read the CA; None if there is none, or it ends soon."""
        if not (folder / _CA_CERTIFICATE).exists() or not (folder / _CA_KEY).exists():
            return None
        certificate = x509.load_pem_x509_certificate((folder / _CA_CERTIFICATE).read_bytes())
        key = _read_key(folder / _CA_KEY)
        if certificate.not_valid_after_utc - now < _SERVING_LIFE:
            return None
        return cls(certificate, key)

    @classmethod
    def create(cls, folder: Path, now: datetime) -> Self:
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("mcm sandbox CA")
        public = key.public_key()
        builder = (
            _builder(name, name, public, now, _CA_LIFE)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )
        authority = cls(builder.sign(key, hashes.SHA256()), key)
        write_private(folder / _CA_KEY, _key_pem(key))
        write_private(folder / _CA_CERTIFICATE, authority.pem)
        return authority

    def issue(self, folder: Path, now: datetime) -> None:
        """Make the server's certificate and key."""
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key()
        issuer = self.key.public_key()
        builder = (
            _builder(_name("mcm sandbox"), self.certificate.subject, public, now, _SERVING_LIFE)
            .add_extension(x509.SubjectAlternativeName(_NAMES), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False
            )
        )
        certificate = builder.sign(self.key, hashes.SHA256())
        write_private(folder / _KEY, _key_pem(key))
        write_private(folder / _CERTIFICATE, certificate.public_bytes(serialization.Encoding.PEM))


def _is_current(folder: Path, authority: _Authority, now: datetime) -> bool:
    """Whether a serving certificate is there that the CA signed and that lasts a while."""
    if not (folder / _CERTIFICATE).exists() or not (folder / _KEY).exists():
        return False
    certificate = x509.load_pem_x509_certificate((folder / _CERTIFICATE).read_bytes())
    key = _read_key(folder / _KEY)
    if certificate.public_key() != key.public_key():
        return False
    try:
        certificate.verify_directly_issued_by(authority.certificate)
    except Exception:  # the library raises three kinds; all of them mean "not of this CA"
        return False
    return certificate.not_valid_after_utc - now > _RENEW_BEFORE


def _read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    os.chmod(path, 0o600)  # whoever copied the folder may have opened it
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path.name} is no elliptic-curve key")
    return key


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
