"""Which credentials a request bears: who we are, fresh each time.

A provider hands out numbered generations of a credential. When the server rejects one (401), the
provider is asked for another: at most one renewal runs at a time, whoever comes while it runs
takes its result, and a generation that has been replaced already costs no renewal at all.

The bookkeeping (:class:`CredentialCache`) is synchronous and pure but for the clock it is told.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, final

from mcm.client import connection
from mcm.client.errors import CredentialsError
from mcm.clock import Clock
from mcm.workqueue.backoff import Backoff

Headers = tuple[tuple[str, str], ...]

_TOKEN_HELD = 60.0
_RENEWED_EARLY = 10.0
_PAUSES = Backoff(1.0, 30.0)
_CALM = 120.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A client certificate and its key, PEM."""

    cert: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Credential:
    """What one request carries. Two of them are interchangeable if ``generation`` is the same."""

    generation: int
    headers: Headers = field(default=(), repr=False)
    certificate: Certificate | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a source found. ``fresh_for`` seconds it needs no renewal, after ``valid_for`` it must
    not be used (None: for ever)."""

    headers: Headers = field(default=(), repr=False)
    certificate: Certificate | None = field(default=None, repr=False)
    fresh_for: float | None = None
    valid_for: float | None = None


class CredentialsProvider(Protocol):
    """Raises only :class:`CredentialsError`. Safe to call from many tasks at once."""

    async def current(self) -> Credential:
        """Return a credential that may be used now."""
        ...

    async def renewed(self, rejected: Credential) -> Credential | None:
        """Return one that differs from ``rejected``, or None if there is none to try."""
        ...


class CredentialSource(Protocol):
    """Where a renewable credential comes from: a file, a plugin."""

    async def fetch(self) -> Fetched:
        """Read or make one now. Raises :class:`CredentialsError`."""
        ...


@final
class StaticCredentials:
    """A credential that nobody renews; refused by ourselves once it is known to have expired."""

    def __init__(
        self,
        headers: Headers = (),
        *,
        clock: Clock | None = None,
        expires_at: float | None = None,
        remedy: str = "",
    ) -> None:
        self._credential = Credential(0, headers)
        self._clock = clock
        self._expires_at = expires_at
        self._remedy = remedy

    async def current(self) -> Credential:
        if self._expired():
            raise CredentialsError(f"the token has expired; {self._remedy}".rstrip("; "))
        return self._credential

    async def renewed(self, rejected: Credential) -> Credential | None:
        return None

    def _expired(self) -> bool:
        if self._clock is None or self._expires_at is None:
            return False
        return self._clock.now().timestamp() >= self._expires_at


@final
class CredentialCache:
    """The state of a renewable credential. Times are monotonic seconds, told by the caller."""

    def __init__(self) -> None:
        self._credential: Credential | None = None
        self._stale_at: float | None = None  # None: never
        self._dead_at: float | None = None
        self._failures = _Pause()
        self._rejections = _Pause()
        self._failure = ""

    def fresh(self, now: float) -> Credential | None:
        """Return the credential if it needs no renewal."""
        return None if _past(self._stale_at, now) else self.usable(now)

    def usable(self, now: float) -> Credential | None:
        """Return the credential if it may still be used, renewal due or not."""
        return None if _past(self._dead_at, now) else self._credential

    def accept(self, fetched: Fetched, now: float) -> Credential:
        """Take a fetched credential; the generation grows only if it differs from the last."""
        last = self._credential
        if last is None or (last.headers, last.certificate) != (
            fetched.headers,
            fetched.certificate,
        ):
            generation = 0 if last is None else last.generation + 1
            last = Credential(generation, fetched.headers, fetched.certificate)
        self._credential = last
        self._stale_at = None if fetched.fresh_for is None else now + fetched.fresh_for
        self._dead_at = None if fetched.valid_for is None else now + fetched.valid_for
        self._failures.reset()
        self._failure = ""
        return last

    def fail(self, error: CredentialsError, now: float) -> None:
        """Remember a failed fetch: the next one waits, longer each time."""
        self._failure = str(error)
        self._failures.extend(now)

    def failure(self, now: float) -> CredentialsError | None:
        """Return the last failure while no new fetch is due."""
        return CredentialsError(self._failure) if self._failures.holds(now) else None

    def may_replace(self, rejected: Credential, now: float) -> bool:
        """Tell whether a rejected credential justifies a renewal now, and count it.

        A server that rejects every new credential would else have us run a plugin for each
        request.
        """
        if self._rejections.holds(now) or self._failures.holds(now):
            return False
        self._rejections.extend(now)
        return True


@final
class _Pause:
    """A pause that doubles with each cause and is forgotten after a calm time."""

    def __init__(self) -> None:
        self._until = float("-inf")
        self._count = 0

    def holds(self, now: float) -> bool:
        return now < self._until

    def extend(self, now: float) -> None:
        if now - self._until > _CALM:
            self._count = 0
        self._until = now + _PAUSES.delay(self._count)
        self._count += 1

    def reset(self) -> None:
        self._until = float("-inf")
        self._count = 0


@final
class RenewingCredentials:
    """A provider over a source: caches, renews before the end, one renewal at a time.

    If a renewal fails, the old credential serves on for as long as it is valid.
    """

    def __init__(self, source: CredentialSource, *, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._cache = CredentialCache()
        # Whoever holds the lock fetches, in its own task: if it is cancelled, so is the fetch,
        # and the next in line begins anew.
        self._lock = asyncio.Lock()

    async def current(self) -> Credential:
        credential = self._cache.fresh(self._clock.monotonic())
        if credential is not None:
            return credential
        async with self._lock:
            return self._cache.fresh(self._clock.monotonic()) or await self._renew()

    async def renewed(self, rejected: Credential) -> Credential | None:
        async with self._lock:
            now = self._clock.monotonic()
            credential = self._cache.usable(now)
            if credential is not None and credential.generation != rejected.generation:
                return credential
            if not self._cache.may_replace(rejected, now):
                return None
            credential = await self._renew()
            return None if credential.generation == rejected.generation else credential

    async def _renew(self) -> Credential:
        failure = self._cache.failure(self._clock.monotonic())
        if failure is None:
            try:
                fetched = await self._source.fetch()
            except CredentialsError as error:
                self._cache.fail(error, self._clock.monotonic())
                failure = error
            else:
                return self._cache.accept(fetched, self._clock.monotonic())
            logger.warning("cannot renew credentials", extra={"cause": str(failure)})
        credential = self._cache.usable(self._clock.monotonic())
        if credential is None:
            raise failure
        return credential


@final
class TokenFileSource:
    """A bearer token in a file that somebody else rotates (a projected service account token)."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    async def fetch(self) -> Fetched:
        try:
            raw = await asyncio.to_thread(self._path.read_bytes)
        except OSError as error:
            cause = error.strerror or type(error).__name__
            raise CredentialsError(f"cannot read token file {self._path}: {cause}") from None
        headers = bearer(raw.decode("utf-8", "replace"), origin=f"token file {self._path}")
        return Fetched(headers, fresh_for=_TOKEN_HELD - _RENEWED_EARLY)


def bearer(token: str, *, origin: str) -> Headers:
    """Return the header for a token, stripped. Raises :class:`CredentialsError` naming ``origin``
    if it is empty or could not be a header's value."""
    token = token.strip()
    if not token:
        raise CredentialsError(f"{origin} is empty")
    if not token.isascii() or not token.isprintable():
        raise CredentialsError(f"{origin} holds characters that no token has")
    return (("Authorization", f"Bearer {token}"),)


def basic(username: str, password: str) -> Headers:
    code = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
    return (("Authorization", f"Basic {code}"),)


def impersonation_headers(who: connection.Impersonation) -> Headers:
    """Return the ``Impersonate-…`` headers, in order; extra keys escaped as RFC 3986 does."""
    return tuple(_impersonation(who))


def _impersonation(who: connection.Impersonation) -> Iterable[tuple[str, str]]:
    if who.user:
        yield "Impersonate-User", who.user
    if who.uid:
        yield "Impersonate-Uid", who.uid
    for group in who.groups:
        yield "Impersonate-Group", group
    for key, values in who.extra:
        for value in values:
            yield f"Impersonate-Extra-{_header_name(key)}", value


def _header_name(key: str) -> str:
    plain = "!#$&'*+-.^_`|~"  # what RFC 9110 allows beside letters and digits, but for the percent
    return "".join(
        chr(b) if chr(b).isascii() and (chr(b).isalnum() or chr(b) in plain) else f"%{b:02X}"
        for b in key.encode()
    )


def _past(moment: float | None, now: float) -> bool:
    return moment is not None and now >= moment
