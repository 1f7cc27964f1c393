"""Credential plugins: programs that print an ``ExecCredential`` (client.authentication.k8s.io).

The plugin runs in its own process group without a terminal, under a time limit; it is killed with
its children when the limit passes or nobody waits any more. Its output is a secret: it appears in
no text. Of its error output the last line goes into the error, as that says what to do.
Source of the protocol: the Kubernetes documentation, "client-go credential plugins".
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, final

import msgspec

from mcm.client.connection import ExecPlugin
from mcm.client.credentials import Certificate, Fetched, bearer
from mcm.client.errors import CredentialsError
from mcm.clock import Clock

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")

_OUTPUT_LIMIT = 1 << 20
_COMPLAINT_LIMIT = 300
_RENEWED_EARLY = 10.0
_LEAST_HELD = 1.0
_LAST_WAIT = 1.0


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, frozen=True, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _Status | None = None


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a plugin's process ended."""

    code: int
    stdout: bytes
    stderr: bytes


@final
class ExecSource:
    """Runs the plugin of a kubeconfig user."""

    def __init__(self, spec: ExecPlugin, *, clock: Clock, environ: Mapping[str, str]) -> None:
        self._spec = spec
        self._clock = clock
        self._environ = environ

    async def fetch(self) -> Fetched:
        ending = await _run(self._spec, environment(self._spec, self._environ))
        if ending.code != 0:
            complaint = _last_line(ending.stderr)
            raise _failure(self._spec, f"ended with code {ending.code}{complaint}")
        if len(ending.stdout) > _OUTPUT_LIMIT:
            raise _failure(self._spec, "printed more than a credential")
        return parse(self._spec, ending.stdout, now=self._clock.now())


def environment(spec: ExecPlugin, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the plugin's environment: ours, the kubeconfig's additions, and the exec info."""
    info: dict[str, object] = {"interactive": False}
    if spec.cluster is not None:
        info["cluster"] = spec.cluster
    document = {"apiVersion": spec.api_version, "kind": "ExecCredential", "spec": info}
    encoded = msgspec.json.encode(document).decode()
    return {**environ, **dict(spec.env), "KUBERNETES_EXEC_INFO": encoded}


def parse(spec: ExecPlugin, stdout: bytes, *, now: datetime) -> Fetched:
    """Read a plugin's output; raises :class:`CredentialsError` that quotes nothing of it."""
    try:
        credential = msgspec.json.decode(stdout, type=_ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _failure(spec, "printed no ExecCredential") from None
    if credential.kind != "ExecCredential" or credential.api_version != spec.api_version:
        raise _failure(spec, f"did not print an ExecCredential of {spec.api_version}")
    status = credential.status
    if status is None:
        raise _failure(spec, "printed an ExecCredential without status")
    certificate = _certificate(spec, status)
    if not status.token and certificate is None:
        raise _failure(spec, "printed neither a token nor a client certificate")
    headers = bearer(status.token, origin="the plugin's token") if status.token else ()
    fresh_for, valid_for = _lifetime(spec, status.expiration_timestamp, now)
    return Fetched(headers, certificate, fresh_for, valid_for)


def _certificate(spec: ExecPlugin, status: _Status) -> Certificate | None:
    cert, key = status.client_certificate_data, status.client_key_data
    if bool(cert) != bool(key):
        raise _failure(spec, "printed only one half of a client certificate and its key")
    return Certificate(cert.encode(), key.encode()) if cert and key else None


def _lifetime(
    spec: ExecPlugin, expires: datetime | None, now: datetime
) -> tuple[float | None, float | None]:
    """Return (fresh for, valid for) in seconds; without an expiry, as long as the process lives.

    Renewal comes early, but by no more than a tenth of the life, so that short-lived tokens do not
    run the plugin at every request. One that looks expired on arrival (skewed clocks) is held for
    a moment and left to the server to judge.
    """
    if expires is None:
        return None, None
    if expires.tzinfo is None:
        raise _failure(spec, "printed an expirationTimestamp without a time zone")
    left = (expires - now).total_seconds()
    early = min(_RENEWED_EARLY, left / 10)
    return max(_LEAST_HELD, left - early), max(_LEAST_HELD, left)


async def _run(spec: ExecPlugin, env: Mapping[str, str]) -> _Ending:
    process = await _start(spec, env)
    finished = False
    limit = asyncio.timeout(spec.timeout)
    try:
        async with limit:
            ending = await _finish(process)
        finished = True
        return ending
    except TimeoutError:
        if not limit.expired():
            raise
    finally:
        if not finished:
            await _kill(process)
    raise _failure(spec, f"did not finish within {spec.timeout:g} s")


async def _start(spec: ExecPlugin, env: Mapping[str, str]) -> asyncio.subprocess.Process:
    try:
        return await _started(
            asyncio.create_subprocess_exec(
                spec.command,
                *spec.args,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=env,
                start_new_session=True,  # its own process group, so that its children die with it
            )
        )
    except FileNotFoundError:
        hint = f": {spec.install_hint.strip()}" if spec.install_hint else ""
        raise _failure(spec, f"is not installed{hint}") from None
    except OSError as error:
        raise _failure(spec, f"cannot be run: {error.strerror}") from None


async def _started(
    creation: Coroutine[Any, Any, asyncio.subprocess.Process],
) -> asyncio.subprocess.Process:
    """Wait for a process to start, also when cancelled in the middle, and kill it then.

    Left to itself, a cancelled start kills the plugin but not its children, and waits for as long
    as they hold the other ends of the pipes.
    """
    starting = asyncio.ensure_future(creation)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(OSError):
            await _kill(await starting)
        raise


async def _finish(process: asyncio.subprocess.Process) -> _Ending:
    """Read both outputs at once (a full pipe would block the plugin) until the end."""
    assert process.stdout is not None
    assert process.stderr is not None
    stdout, stderr = await asyncio.gather(
        _head(process.stdout, _OUTPUT_LIMIT + 1), _tail(process.stderr, 4 * _COMPLAINT_LIMIT)
    )
    return _Ending(await process.wait(), stdout, stderr)


async def _head(stream: asyncio.StreamReader, limit: int) -> bytes:
    kept = bytearray()
    while chunk := await stream.read(65536):
        kept += chunk[: limit - len(kept)]
    return bytes(kept)


async def _tail(stream: asyncio.StreamReader, limit: int) -> bytes:
    kept = b""
    while chunk := await stream.read(65536):
        kept = (kept + chunk)[-limit:]
    return kept


async def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # The wait includes the pipes, and a child that left the group may hold them for very long.
    with suppress(TimeoutError):
        async with asyncio.timeout(_LAST_WAIT):
            await process.wait()


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    text = "".join(c for c in lines[-1] if c.isprintable()) if lines else ""
    return f": {text[-_COMPLAINT_LIMIT:]}" if text else ""


def _failure(spec: ExecPlugin, what: str) -> CredentialsError:
    return CredentialsError(f"credential plugin {spec.command!r} {what}")
