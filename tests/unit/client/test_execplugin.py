from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mcm.client.connection import ExecPlugin
from mcm.client.credentials import Fetched, RenewingCredentials
from mcm.client.errors import CredentialsError
from mcm.client.execplugin import ExecSource, parse
from mcm.clock import SystemClock

V1 = "client.authentication.k8s.io/v1"
SENTINEL = "s3ntinel-t0ken"
NOW = datetime(2024, 1, 1, tzinfo=UTC)

Script = Callable[..., ExecPlugin]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Return a maker of plugins from a shell script's text."""

    def make(text: str, **options: Any) -> ExecPlugin:
        file = tmp_path / "plugin"
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)
        return ExecPlugin(command=str(file), api_version=V1, **{"timeout": 10.0, **options})

    return make


def credential(**status: object) -> str:
    return json.dumps({"apiVersion": V1, "kind": "ExecCredential", "status": status})


async def fetch(plugin: ExecPlugin, clock: Any) -> Fetched:
    return await ExecSource(plugin, clock=clock, environ=os.environ).fetch()


async def gone(pid: int) -> bool:
    """Tell whether a process dies soon."""
    for _ in range(200):
        if dead(pid):
            return True
        await SystemClock().sleep(0.01)
    return False


def dead(pid: int) -> bool:
    """Tell whether a process is no more, or only waits to be buried."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"


async def test_a_token_is_taken_from_the_output(script: Script, hands: Any) -> None:
    fetched = await fetch(script(f"echo '{credential(token='abc')}'"), hands)
    assert fetched.headers == (("Authorization", "Bearer abc"),)
    assert fetched.fresh_for is None


async def test_the_plugin_gets_arguments_environment_and_exec_info(
    script: Script, tmp_path: Path, hands: Any
) -> None:
    plugin = script(
        f'echo "$1 $WHO" > {tmp_path}/seen; echo "$KUBERNETES_EXEC_INFO" > {tmp_path}/info\n'
        f"read line && exit 3\necho '{credential(token='abc')}'",
        args=("get-token",),
        env=(("WHO", "me"),),
        cluster={"server": "https://a"},
    )
    await fetch(plugin, hands)
    assert (tmp_path / "seen").read_text() == "get-token me\n"
    assert json.loads((tmp_path / "info").read_text()) == {
        "apiVersion": V1,
        "kind": "ExecCredential",
        "spec": {"interactive": False, "cluster": {"server": "https://a"}},
    }


async def test_a_hanging_plugin_is_killed_after_its_time(script: Script, hands: Any) -> None:
    with pytest.raises(CredentialsError, match=r"did not finish within 0\.1 s"):
        await fetch(script("exec sleep 60", timeout=0.1), hands)


async def test_a_plugin_nobody_waits_for_is_killed_with_its_children(
    script: Script, tmp_path: Path, hands: Any
) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    plugin = script(f"sleep 60 & echo $$ $! > {ready}; wait")
    waiting = asyncio.ensure_future(fetch(plugin, hands))
    pids = (await asyncio.to_thread(ready.read_text)).split()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert len(pids) == 2
    assert [await gone(int(pid)) for pid in pids] == [True, True]


async def test_a_plugin_is_killed_with_its_children_even_while_it_is_being_started(
    script: Script, tmp_path: Path, hands: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    plugin = script(f"sleep 60 & echo $$ $! > {ready}; wait")
    pids: list[str] = []
    create = asyncio.create_subprocess_exec

    async def slowly(*args: Any, **options: Any) -> asyncio.subprocess.Process:
        process = await create(*args, **options)
        pids.extend((await asyncio.to_thread(ready.read_text)).split())
        waiting.cancel()
        await SystemClock().sleep(0.01)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slowly)
    waiting = asyncio.ensure_future(fetch(plugin, hands))
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert [await gone(int(pid)) for pid in pids] == [True, True]


async def test_a_flood_of_complaints_blocks_nothing(script: Script, hands: Any) -> None:
    plugin = script(
        f"head -c 1000000 /dev/zero | tr '\\0' 'x' >&2\necho '{credential(token='abc')}'"
    )
    assert (await fetch(plugin, hands)).headers == (("Authorization", "Bearer abc"),)


async def test_a_flood_of_output_is_refused(script: Script, hands: Any) -> None:
    plugin = script("head -c 3000000 /dev/zero | tr '\\0' 'x'")
    with pytest.raises(CredentialsError, match="more than a credential"):
        await fetch(plugin, hands)


async def test_a_failing_plugin_says_why_in_its_last_line(script: Script, hands: Any) -> None:
    plugin = script("echo noise >&2; echo 'Unable to locate credentials' >&2; exit 7")
    with pytest.raises(CredentialsError, match=r"ended with code 7: Unable to locate credentials$"):
        await fetch(plugin, hands)


async def test_a_missing_plugin_shows_the_install_hint(tmp_path: Path, hands: Any) -> None:
    plugin = ExecPlugin(str(tmp_path / "nope"), V1, install_hint="See https://example.com")
    with pytest.raises(CredentialsError, match=r"is not installed: See https://example\.com"):
        await fetch(plugin, hands)


async def test_a_file_that_is_no_program_is_named(tmp_path: Path, hands: Any) -> None:
    (tmp_path / "data").write_text("x")
    with pytest.raises(CredentialsError, match="cannot be run: Permission denied"):
        await fetch(ExecPlugin(str(tmp_path / "data"), V1), hands)


async def test_one_run_serves_all_and_a_storm_of_rejections_costs_one_more(
    script: Script, tmp_path: Path, hands: Any
) -> None:
    plugin = script(
        f"echo run >> {tmp_path}/runs; n=$(wc -l < {tmp_path}/runs)\n"
        f'echo "{{\\"apiVersion\\":\\"{V1}\\",\\"kind\\":\\"ExecCredential\\",'
        '\\"status\\":{\\"token\\":\\"t$n\\"}}"'
    )
    provider = RenewingCredentials(ExecSource(plugin, clock=hands, environ=os.environ), clock=hands)
    first = set(await asyncio.gather(*(provider.current() for _ in range(10))))
    assert len(first) == 1
    rejected = first.pop()
    await asyncio.gather(*(provider.renewed(rejected) for _ in range(10)))
    assert (tmp_path / "runs").read_text().count("run") == 2


@pytest.mark.parametrize(
    "output",
    [
        "",
        SENTINEL,
        f'"{SENTINEL}"',
        json.dumps({"status": {"token": SENTINEL}}),
        json.dumps({"apiVersion": V1, "kind": "Other", "status": {"token": SENTINEL}}),
        json.dumps(
            {
                "apiVersion": "client.authentication.k8s.io/v1beta1",
                "kind": "ExecCredential",
                "status": {"token": SENTINEL},
            }
        ),
        json.dumps({"apiVersion": V1, "kind": "ExecCredential"}),
        credential(),
        credential(token=""),
        credential(token=[SENTINEL]),
        credential(token=f"{SENTINEL}\nX-Other: 1"),
        credential(clientCertificateData=SENTINEL),
        credential(token=SENTINEL, clientKeyData=SENTINEL),
        credential(token=SENTINEL, expirationTimestamp="tomorrow"),
        credential(token=SENTINEL, expirationTimestamp="2024-01-01T00:00:00"),
    ],
)
async def test_strange_output_is_an_error_that_quotes_nothing(
    output: str, script: Script, tmp_path: Path, hands: Any, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "output").write_text(output)
    with caplog.at_level(logging.DEBUG), pytest.raises(CredentialsError) as caught:
        await fetch(script(f"cat {tmp_path}/output"), hands)
    assert SENTINEL not in str(caught.value) + repr(caught.value) + caplog.text
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("expires", "fresh_for", "valid_for"),
    [
        ("2024-01-01T01:00:00Z", 3590, 3600),
        ("2024-01-01T02:00:00+01:00", 3590, 3600),
        ("2024-01-01T00:00:50Z", 45, 50),
        ("2023-12-31T00:00:00Z", 1, 1),
    ],
)
def test_the_expiry_is_honoured_a_little_early(
    expires: str, fresh_for: float, valid_for: float
) -> None:
    output = credential(token="a", expirationTimestamp=expires).encode()
    fetched = parse(ExecPlugin("p", V1), output, now=NOW)
    assert (fetched.fresh_for, fetched.valid_for) == (fresh_for, valid_for)


def test_a_token_and_a_certificate_may_come_together() -> None:
    output = credential(token="a", clientCertificateData="CERT", clientKeyData="KEY").encode()
    fetched = parse(ExecPlugin("p", V1), output, now=NOW)
    assert fetched.headers == (("Authorization", "Bearer a"),)
    assert fetched.certificate is not None
    assert (fetched.certificate.cert, fetched.certificate.key) == (b"CERT", b"KEY")


def test_arguments_and_variables_are_not_in_the_repr() -> None:
    plugin = ExecPlugin("p", V1, args=(SENTINEL,), env=(("TOKEN", SENTINEL),))
    assert SENTINEL not in repr(plugin)


async def test_a_bare_name_is_looked_up_in_the_path(hands: Any) -> None:
    plugin = ExecPlugin(
        Path(sys.executable).name,
        V1,
        args=("-c", f"print({credential(token='abc')!r})"),
        env=(("PATH", str(Path(sys.executable).parent)),),
    )
    assert (await fetch(plugin, hands)).headers == (("Authorization", "Bearer abc"),)
