"""What the image holds, and a manager that runs from it: read-only, as nobody, in an empty root."""

from __future__ import annotations

import importlib.util
import json
import re
import signal
import subprocess
import tomllib
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

import pytest

from mcm import __version__
from mcm.api.crds import crd_manifests
from mcm.clock import SystemClock
from mcm.manager import LEASE_NAMES
from mcm.providers.simulated import virtual_machine
from mcm.sandbox import samples
from mcm.sandbox.cluster import create_all
from tests.envtest.processes import free_ports
from tests.integration.background import BackgroundServer
from tests.packaging.sealed_root import ENVIRONMENT, USER, SealedRoot

pytestmark = pytest.mark.timeout(300)

SOURCES = Path(__file__).resolve().parents[2]
CLOCK = SystemClock()
KUBECONFIG = "/etc/mcm/kubeconfig.yaml"
STOPS_WITHIN = 30.0
FLEET = 3


def test_the_image_is_pinned_and_runs_as_nobody() -> None:
    lines = (SOURCES / "image/Dockerfile").read_text().splitlines()
    assert any(
        re.fullmatch(r"ARG BASE=python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", line)
        for line in lines
    )
    assert {line for line in lines if line.startswith("FROM ")} == {
        "FROM ${BASE} AS build",
        "FROM ${BASE} AS root",
        "FROM scratch",
    }
    last = lines[lines.index("FROM scratch") :]
    assert {f"USER {USER}:{USER}", 'ENTRYPOINT ["mcm"]', 'CMD ["run"]'} <= set(last)
    said = {name: value for name, value in ENVIRONMENT.items() if name == "HOME"}
    assert all(f"{name}={value}" in " ".join(last) for name, value in said.items())


def packages_of(installed: Path) -> Path:
    (found,) = (installed / "opt/mcm/lib").glob("python*/site-packages")
    return found


def names_in(installed: Path) -> dict[str, str]:
    """Return version by name of each distribution."""
    infos = packages_of(installed).glob("*.dist-info")
    pairs = (info.name.removesuffix(".dist-info").rsplit("-", 1) for info in infos)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in pairs}


def test_it_holds_what_runs_and_nothing_to_build_or_test_with(installed: Path) -> None:
    names = names_in(installed)
    project = tomllib.loads((SOURCES / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[^\w-]", need)[0].replace("_", "-") for need in project["dependencies"]}
    needed |= {re.split(r"[><]", need)[0] for need in project["optional-dependencies"]["tracing"]}
    assert needed | {"mcm"} <= set(names)
    for unwanted in ("pip", "setuptools", "wheel", "hatchling", "pytest", "rich", "cyclonedx-bom"):
        assert unwanted not in names
    pins = dict(
        line.lower().replace("_", "-").split("==")
        for line in (SOURCES / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
    assert {name: version for name, version in names.items() if name != "mcm"} == {
        name: pins[name] for name in names if name != "mcm"
    }
    scripts = {file.name for file in (installed / "opt/mcm/bin").iterdir()}
    assert {name for name in scripts if not name.startswith("python")} == {"mcm"}


def test_everybody_may_read_it_and_nobody_write_it(installed: Path) -> None:
    for path in (installed / "opt/mcm").rglob("*"):
        if path.is_symlink():
            continue
        mode = path.stat().st_mode
        assert mode & 0o444 == 0o444 and not mode & 0o022, path
        assert not path.is_dir() or mode & 0o111 == 0o111, path


def test_all_bytecode_is_there_and_needs_no_look_at_its_source(installed: Path) -> None:
    modules = [*packages_of(installed).rglob("mcm/**/*.py")]
    assert len(modules) > 300
    for module in modules:
        compiled = Path(importlib.util.cache_from_source(str(module))).read_bytes()
        assert compiled[4] == 0b01, module  # by hash, unchecked


def test_nothing_tells_where_it_was_built(installed: Path) -> None:
    told = [
        path
        for path in (installed / "opt/mcm").rglob("*")
        if path.is_file() and not path.is_symlink() and str(installed).encode() in path.read_bytes()
    ]
    assert not told


def test_the_bill_of_materials_names_all_that_is_in_it(installed: Path) -> None:
    bill = json.loads((installed / "opt/mcm/sbom.cdx.json").read_text())
    assert bill["bomFormat"] == "CycloneDX"
    assert bill["metadata"]["component"]["name"] == "mcm"
    listed = {
        re.sub(r"[-_.]+", "-", part["name"]).lower(): part["version"] for part in bill["components"]
    }
    assert {**listed, "mcm": __version__} == names_in(installed)


@pytest.mark.usefixtures("can_seal")
def test_a_manager_works_from_it_read_only_and_as_nobody(installed: Path, tmp_path: Path) -> None:
    kinds = [*crd_manifests(), virtual_machine.crd_manifest()]
    (port,) = free_ports(1)
    with BackgroundServer(tmp_path, kinds) as background:
        background.do(create_all(background.server, samples.load()))
        folder = tmp_path / "sealed"
        folder.mkdir()
        root = SealedRoot(folder, installed, {KUBECONFIG: background.kubeconfig.read_bytes()})
        log = tmp_path / "log"
        with log.open("wb") as output, manager(root, port, output) as process:
            try:
                until(background, process, log, lambda: available(background) == FLEET)
                holders = {lease["spec"]["holderIdentity"] for lease in leases(background)}
                assert len(holders) == 1 and all(holders)
                with urllib.request.urlopen(
                    f"http://127.0.0.1:{port}/healthz", timeout=9
                ) as answer:
                    assert answer.status == 200
                status = Path(f"/proc/{process.pid}/status").read_text()
                process.send_signal(signal.SIGTERM)
                assert process.wait(STOPS_WITHIN) == 0
            finally:
                process.kill()
        assert not any(lease["spec"].get("holderIdentity") for lease in leases(background))
    assert re.search(r"^Uid:\s+65532\s+65532\s+65532\s+65532$", status, re.MULTILINE)
    assert re.search(r"^CapEff:\s+0+$", status, re.MULTILINE)
    assert re.search(r"^NoNewPrivs:\s+1$", status, re.MULTILINE)
    said = log.read_text()
    assert "Traceback" not in said and "Read-only" not in said and "Permission denied" not in said


@pytest.mark.usefixtures("can_seal")
def test_nothing_in_it_can_be_written_nor_built(installed: Path, tmp_path: Path) -> None:
    tried = """
import errno, os, shutil
for place in ("/", "/opt/mcm", "/opt/mcm/lib", "/etc/mcm", os.path.dirname(os.__file__)):
    try:
        open(f"{place}/made", "w")
    except OSError as error:
        assert error.errno in (errno.EROFS, errno.EACCES), error
    else:
        raise AssertionError(place)
for tool in ("sh", "gcc", "cc", "pip", "pip3"):
    assert shutil.which(tool) is None, tool
for package in ("pip", "setuptools", "pytest"):
    try:
        __import__(package)
    except ImportError:
        continue
    raise AssertionError(package)
print("sealed")
"""
    folder = tmp_path / "sealed"
    folder.mkdir()
    root = SealedRoot(folder, installed, {f"{KUBECONFIG}": b""})
    with root.start(["/opt/mcm/bin/python", "-c", tried], subprocess.PIPE) as process:
        output, _ = process.communicate(timeout=60)
    assert output.decode() == "sealed\n"


def manager(root: SealedRoot, port: int, output: IO[bytes]) -> subprocess.Popen[bytes]:
    return root.start(
        [
            *("mcm", "run", "--simulate-cloud", f"--target-kubeconfig={KUBECONFIG}"),
            *("--namespace=default", "--address=127.0.0.1", f"--port={port}"),
        ],
        output,
    )


def available(background: BackgroundServer) -> int:
    (deployment,) = cast(
        "list[Any]", background.server.objects("machine.sapcloud.io", "machinedeployments")
    )
    found: int = deployment.get("status", {}).get("availableReplicas", 0)
    return found


def leases(background: BackgroundServer) -> list[Any]:
    found = cast("list[Any]", background.server.objects("coordination.k8s.io", "leases"))
    return [lease for lease in found if lease["metadata"]["name"] in LEASE_NAMES]


def until(
    background: BackgroundServer,
    process: subprocess.Popen[bytes],
    log: Path,
    condition: Callable[[], bool],
) -> None:
    """Wait on the server's loop, up to two minutes."""
    for _ in range(1200):
        if condition():
            return
        assert process.poll() is None, log.read_text()
        background.do(CLOCK.sleep(0.1))
    raise AssertionError(f"not within two minutes:\n{log.read_text()}")
