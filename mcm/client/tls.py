"""Trust and client certificates, re-read while the process lives.

Authorities and certificates in files are rotated by others (cert-manager, kubelets). They are
looked at again every five minutes, and soon after a failed handshake; what changed makes a new
context, to be used for new connections. A file that is torn or missing for a while changes
nothing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

from mcm.client.connection import TLSSpec
from mcm.client.credentials import Credential
from mcm.client.errors import ConfigurationError, TLSError
from mcm.clock import Clock

_LOOKED_AT_EVERY = 300.0
_LOOKED_AT_SOON = 5.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Material:
    """What a TLS context is made of, PEM; empty if there is none."""

    ca: bytes = b""
    cert: bytes = b""
    key: bytes = field(default=b"", repr=False)
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class VersionedContext:
    """A context and its number, which grows with each change of the material."""

    version: int
    context: ssl.SSLContext


def read_material(spec: TLSSpec) -> Material:
    """Read what ``spec`` names. Blocks. Raises :class:`ConfigurationError` naming the file."""
    return Material(
        ca=spec.ca_data or _read(spec.ca_file, "certificate authority"),
        cert=spec.cert_data or _read(spec.cert_file, "client certificate"),
        key=spec.key_data or _read(spec.key_file, "client key"),
        insecure=spec.insecure,
    )


def build_context(material: Material) -> ssl.SSLContext:
    """Make a client context. Blocks briefly. Raises :class:`ConfigurationError`."""
    if material.insecure and material.ca:
        raise ConfigurationError(
            "a certificate authority and insecure-skip-tls-verify exclude each other; drop one"
        )
    if bool(material.cert) != bool(material.key):
        raise ConfigurationError("a client certificate and its key belong together; one is missing")
    context = _trusting(material)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Python 3.13 turns this on. Cluster authorities are often home-made and lack extensions that
    # it wants; no other Kubernetes client insists.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if material.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if material.cert:
        load_pair(context, material.cert, material.key, what="client certificate")
    return context


def _trusting(material: Material) -> ssl.SSLContext:
    if not material.ca:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=material.ca.decode("ascii", "ignore"))
    except (ssl.SSLError, ValueError):
        raise ConfigurationError("the certificate authority is no PEM certificate") from None


def load_pair(context: ssl.SSLContext, cert: bytes, key: bytes, *, what: str) -> None:
    """Let ``context`` show a certificate, in PEM, in connections to come. Blocks briefly.

    The ssl module reads files only: one of our own, for a moment. Raises
    :class:`ConfigurationError`, which calls the certificate ``what``.
    """
    with tempfile.TemporaryDirectory(prefix="mcm-") as folder:  # mode 0700
        path = os.path.join(folder, "pair.pem")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(cert.rstrip() + b"\n" + key.rstrip() + b"\n")
        try:
            # The empty password keeps OpenSSL from asking for one on the terminal.
            context.load_cert_chain(path, password="")
        except (ssl.SSLError, ValueError) as error:
            cause = getattr(error, "reason", None) or "not PEM, or the key is encrypted"
            raise ConfigurationError(f"{what} and key do not load ({cause})") from None
        finally:
            os.unlink(path)


def _read(path: str, what: str) -> bytes:
    if not path:
        return b""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(f"cannot read {what} {path}: {error.strerror}") from None
    if not data.strip():
        raise ConfigurationError(f"{what} {path} is empty")
    return data


@final
class TLSSource:
    """Hands out the current context. Safe for many tasks; file reads happen in a thread."""

    def __init__(self, spec: TLSSpec, *, clock: Clock) -> None:
        self._spec = spec
        self._clock = clock
        self._lock = asyncio.Lock()
        self._material: Material | None = None
        self._holder = Credential(-1)
        self._current: VersionedContext | None = None
        self._look_at = 0.0
        self._looked_at = 0.0

    async def current(self, credential: Credential) -> VersionedContext:
        """Return the context for a credential, whose certificate (if it has one) replaces the
        spec's. Raises :class:`TLSError` if there is no usable material and never was."""
        if self._current is not None and not self._due(credential):
            return self._current
        async with self._lock:
            if self._current is None or self._due(credential):
                await self._refresh(credential)
            assert self._current is not None
            return self._current

    def suspect(self) -> None:
        """A handshake failed: look at the files again soon, but not for every failure."""
        self._look_at = min(self._look_at, self._looked_at + _LOOKED_AT_SOON)

    def _due(self, credential: Credential) -> bool:
        return self._clock.monotonic() >= self._look_at or self._outdated(credential)

    def _outdated(self, credential: Credential) -> bool:
        """True if the credential is newer than the one in the context and brings another
        certificate. A late user of an older credential changes nothing."""
        return (
            credential.generation > self._holder.generation
            and credential.certificate != self._holder.certificate
        )

    async def _refresh(self, credential: Credential) -> None:
        holder = credential if self._outdated(credential) else self._holder
        self._looked_at = self._clock.monotonic()
        self._look_at = self._looked_at + _LOOKED_AT_EVERY
        try:
            material, context = await asyncio.to_thread(
                _renewed, self._spec, holder, self._material
            )
        except ConfigurationError as error:
            if self._current is None or holder is not self._holder:
                raise TLSError(str(error)) from None
            logger.warning("keeping the TLS material in use", extra={"cause": str(error)})
            return
        self._material, self._holder = material, holder
        if context is not None:
            version = 0 if self._current is None else self._current.version + 1
            self._current = VersionedContext(version, context)


def _renewed(
    spec: TLSSpec, holder: Credential, last: Material | None
) -> tuple[Material, ssl.SSLContext | None]:
    """Read the material, and make a context if it differs from ``last``."""
    material = read_material(spec)
    if holder.certificate is not None:
        cert, key = holder.certificate.cert, holder.certificate.key
        material = Material(material.ca, cert, key, material.insecure)
    return material, None if material == last else build_context(material)
