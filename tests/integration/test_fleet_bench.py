"""The bench of whole fleets at sandboxes, with a fleet of a few machines. Speeds are not judged."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from mcm.client import kubeconfig
from mcm.client.client import Client
from mcm.client.http import HTTPTransport
from mcm.clock import SystemClock

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(not Path("/proc").exists(), reason="there is no /proc to read from"),
]

_ROOT = Path(__file__).parents[2]
_PATIENCE = 200.0


def _bench(*flags: str, code: int = 0) -> tuple[dict[str, Any], str]:
    """Run it; return its JSON (of a failed one too) and what it said beside."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.fleet", "--json", *flags],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found, done.stderr


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    flags = ("--server=sandbox", "--machines=6", "--raw-objects=8", "--raw-connections=2")
    return _bench(*flags)[0]


def test_every_phase_is_carried_out_and_counted(measured: dict[str, Any]) -> None:
    (run,) = measured["results"]["runs"]
    phases = {phase["name"]: phase for phase in run["phases"]}
    assert list(phases) == ["create", "roll", "scale up", "scale down", "kill", "delete"]
    assert [phase["machines"] for phase in phases.values()] == [6, 6, 1, 1, 1, 6]
    assert phases["create"]["writes"]["POST machines"] == 6
    assert phases["roll"]["writes"]["POST machines"] == 6
    assert phases["roll"]["writes"]["DELETE machines"] == 6
    assert phases["kill"]["writes"]["POST machines"] == 1
    assert phases["delete"]["writes"]["DELETE machines"] == 6
    assert not run["failure"]


def test_what_kubelets_write_is_not_counted_as_the_managers(measured: dict[str, Any]) -> None:
    (run,) = measured["results"]["runs"]
    for phase in run["phases"]:
        assert "POST nodes" not in phase["writes"], phase["name"]
        joined = phase["name"] in ("create", "roll", "scale up", "kill")
        written = sum(phase["writes"].values()) / phase["machines"]
        assert phase["all_writes_a_machine"] >= written + joined - 0.001
        assert phase["own_writes"] == round(phase["own_writes_a_machine"] * phase["machines"])


def test_what_a_phase_takes_is_told(measured: dict[str, Any]) -> None:
    (run,) = measured["results"]["runs"]
    assert measured["bench"] == "fleet"
    assert measured["parameters"]["server"] == "sandbox"
    assert len(run["raw_rates_measured"]) == 2
    for phase in run["phases"]:
        assert phase["seconds"] > 0
        assert phase["efficiency"] > 0
        assert phase["peak_resident_bytes"] > 2**20
        assert phase["cpu_seconds_until_done"].keys() == {"manager", "server", "bench"}
    answered = run["phases"][0]["event_to_write"]
    assert answered["count"] == 12  # each machine was recorded, and found Running
    assert 0 < answered["p50"] <= answered["p99"] <= answered["most"]


def test_a_manager_that_ends_is_told_with_its_last_words_and_the_others_are_measured() -> None:
    found, said = _bench(
        "--server=sandbox",
        "--machines=2",
        "--raw-objects=0",
        "--phases=delete",
        "--manager=broken=echo it is {kubeconfig} that is wrong; exit 3",
        "--manager=mcm --max-in-flight=4",
        code=1,
    )
    broken, mcm = found["results"]["runs"]
    assert "ended with 3" in broken["failure"]
    assert "that is wrong" in broken["failure"]
    assert [phase["name"] for phase in mcm["phases"]] == ["create", "delete"]
    assert mcm["phases"][0]["efficiency"] is None
    assert "bench.fleet: broken, 2 machines: the manager broken ended with 3" in said


class _Sandbox:
    """``mcm sandbox`` as somebody else's cluster, that soon doubts Nodes it does not hear of."""

    def __init__(self, folder: Path) -> None:
        self.kubeconfig = folder / "kubeconfig.yaml"
        flags = (f"--kubeconfig={self.kubeconfig}", "--port=0", "--node-grace=12")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "mcm", "sandbox", *flags],
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        assert "sandbox cluster at" in self.process.stderr.readline()

    def left(self) -> dict[str, list[str]]:
        """Return the names of what a fleet may leave behind, by path."""
        return asyncio.run(self._left())

    async def _left(self) -> dict[str, list[str]]:
        paths = (
            "/apis/machine.sapcloud.io/v1alpha1/machines",
            "/apis/machine.sapcloud.io/v1alpha1/machinesets",
            "/apis/machine.sapcloud.io/v1alpha1/machinedeployments",
            "/apis/machine.sapcloud.io/v1alpha1/machineclasses",
            "/api/v1/nodes",
            "/api/v1/namespaces/kube-system/secrets",
            "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
        )
        clock = SystemClock()
        spec = kubeconfig.load(str(self.kubeconfig))
        client = Client(HTTPTransport(spec, clock=clock), clock=clock)
        try:
            return {path: _names(await client.get_raw(path)) for path in paths}
        finally:
            await client.aclose()


def _names(listed: bytes) -> list[str]:
    return [item["metadata"]["name"] for item in json.loads(listed)["items"]]


@pytest.fixture
def sandbox(tmp_path: Path) -> Iterator[_Sandbox]:
    cluster = _Sandbox(tmp_path)
    try:
        yield cluster
    finally:
        cluster.process.terminate()
        cluster.process.communicate()


def test_nothing_is_left_in_a_cluster_that_is_not_ours(sandbox: _Sandbox) -> None:
    before = sandbox.left()
    flags = (f"--server={sandbox.kubeconfig}", "--machines=4", "--raw-objects=4")
    (run,) = _bench(*flags, "--phases=kill")[0]["results"]["runs"]
    assert (run["server"], run["failure"]) == ("given", "")
    assert [phase["name"] for phase in run["phases"]] == ["create", "kill", "delete"]
    assert sandbox.left() == before


def test_interrupted_anywhere_it_leaves_no_object_and_no_process(sandbox: _Sandbox) -> None:
    before = sandbox.left()
    flags = [f"--server={sandbox.kubeconfig}", "--machines=40", "--raw-objects=0"]
    with subprocess.Popen(
        [sys.executable, "-m", "bench.fleet", *flags],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            clock = SystemClock()
            deadline = clock.monotonic() + 60
            while not any("machines" in path and n for path, n in (sandbox.left()).items()):
                assert process.poll() is None
                assert clock.monotonic() < deadline, "no machine is made"
                threading.Event().wait(0.1)
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=90)
        finally:
            process.kill()
    assert process.returncode == 130, said
    for loose_end in ("Traceback", "Unclosed", "never retrieved", "was destroyed"):
        assert loose_end not in said
    assert sandbox.left() == before
    assert not _processes_with(str(sandbox.kubeconfig), but=[sandbox.process.pid])


def _processes_with(word: str, *, but: Sequence[int]) -> list[str]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if word in line and int(folder.name) not in (*but, os.getpid()):
            found.append(line)
    return found
