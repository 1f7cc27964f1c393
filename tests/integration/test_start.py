"""The main job as a stranger runs it: one command, kubectl in a second terminal, Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.kubectl import Kubectl

pytestmark = [pytest.mark.kubectl, pytest.mark.timeout(180)]

STOPS_WITHIN = 10.0


@contextmanager
def started(folder: Path, log: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    command = [
        *(sys.executable, "-m", "mcm", "start", "--no-progress"),
        *("--dev-dir", str(folder), "--sandbox-port=0"),
        *("--address=127.0.0.1", f"--port={port}"),
    ]
    environment = {k: v for k, v in os.environ.items() if "KUBECONFIG" not in k}
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT
        ) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def test_start_brings_up_a_fleet_that_obeys_kubectl_and_ends_with_ctrl_c(
    kubectl_binary: str, kubectl_home: Path, tmp_path: Path, unused_port: int
) -> None:
    log = tmp_path / "log"
    with started(tmp_path, log, unused_port) as process:
        kubectl = Kubectl(kubectl_binary, kubectl_home, tmp_path / "sandbox-kubeconfig.yaml")
        _wait_for_kubeconfig(kubectl, process)
        _wait_for_available(kubectl, 3)
        assert kubectl("get", "nodes").count(" Ready ") == 3
        kubectl("rollout", "status", "deployment/web", "--timeout=29s")
        kubectl("rollout", "status", "statefulset/store", "--timeout=29s")

        kubectl("scale", "machinedeployment/sample", "--replicas=5")
        _wait_for_available(kubectl, 5)
        victim = kubectl("get", "pod", "store-1", "-o", "jsonpath={.spec.nodeName}")
        kubectl("delete", "machine", victim, "--timeout=30s")
        _wait_for_available(kubectl, 5)
        kubectl("wait", "pod/store-1", "--for=condition=Ready", "--timeout=29s")
        assert kubectl("get", "pod", "store-1", "-o", "jsonpath={.spec.nodeName}") != victim
        kubectl("rollout", "status", "deployment/web", "--timeout=29s")
        assert "VMDeleted" in kubectl("get", "events", "--sort-by=.lastTimestamp")

        everything = ("machinedeployment/sample", "deployment/web", "statefulset/store")
        kubectl("delete", *everything, "--cascade=foreground", "--timeout=29s")
        for kind in ("machines", "machinesets", "vms", "nodes"):
            kubectl("wait", kind, "--all", "--for=delete", "--timeout=30s")
            assert kubectl("get", kind, "-o", "name") == ""

        process.send_signal(signal.SIGINT)
        assert process.wait(STOPS_WITHIN) == 0
    text = log.read_text()
    assert "Traceback" not in text
    assert "stopped" in text


def _wait_for_kubeconfig(kubectl: Kubectl, process: subprocess.Popen[bytes]) -> None:
    for _ in range(200):
        assert process.poll() is None, "mcm start ended by itself"
        if kubectl.kubeconfig.is_file() and kubectl.run("get", "mcd", "sample").code == 0:
            return
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
    raise AssertionError("no sample fleet within 40 s")


def _wait_for_available(kubectl: Kubectl, machines: int) -> None:
    condition = f"jsonpath={{.status.availableReplicas}}={machines}"
    kubectl("wait", "machinedeployment/sample", f"--for={condition}", "--timeout=29s")
