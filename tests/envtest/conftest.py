from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import suppress
from itertools import count

import pytest

from mcm.api.crds import crd_manifests
from mcm.api.meta import JSONObject
from mcm.clock import SystemClock
from mcm.providers.simulated import virtual_machine
from tests.envtest import assets
from tests.envtest.bench import Bench, Document, Peer
from tests.envtest.control_plane import ControlPlane, run
from tests.envtest.sandbox_peer import SandboxThread

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

_numbers = count(1)
_running = pytest.StashKey[ControlPlane]()


def definitions() -> list[JSONObject]:
    return [*crd_manifests(), virtual_machine.crd_manifest()]


@pytest.fixture(scope="session")
def control_plane(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> Iterator[ControlPlane]:
    """One real etcd and kube-apiserver for the session, with our kinds defined."""
    try:
        binaries = assets.locate()
    except assets.AssetsMissing as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))
    plane = ControlPlane(binaries, tmp_path_factory.mktemp("control-plane"))
    run(plane.start())
    pytestconfig.stash[_running] = plane
    try:
        run(_define(_peer_of(plane)))
        yield plane
    finally:
        plane.stop()


@pytest.fixture(scope="session")
def sandbox_thread(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxThread]:
    with SandboxThread(tmp_path_factory.mktemp("sandbox"), definitions()) as sandbox:
        yield sandbox


@pytest.fixture(
    params=[pytest.param("real", marks=pytest.mark.envtest), "sandbox"],
)
def peer(request: pytest.FixtureRequest) -> Peer:
    """Each of the two servers in turn."""
    if request.param == "real":
        plane: ControlPlane = request.getfixturevalue("control_plane")
        return _peer_of(plane)
    sandbox: SandboxThread = request.getfixturevalue("sandbox_thread")
    return sandbox.peer()


@pytest.fixture
async def api(peer: Peer) -> AsyncIterator[Bench]:
    """A user of the server, in a namespace that nobody else uses."""
    bench = Bench(peer, f"test-{next(_numbers)}")
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": bench.namespace}}
    await bench.create("/api/v1/namespaces", namespace)
    try:
        yield bench
    finally:
        await bench.aclose()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build what is missing before any test's time runs; the fixture tells what went wrong."""
    wanted = any(item.get_closest_marker("envtest") for item in session.items)
    if wanted and not session.config.option.collectonly and os.environ.get("CI") == "true":
        with suppress(assets.AssetsMissing, subprocess.TimeoutExpired):
            assets.locate()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of the servers' logs beside a failure."""
    report = yield
    plane = item.config.stash.get(_running, None)
    if report.failed and plane is not None:
        report.sections.append(("control plane logs", plane.tails()))
    return report


def _peer_of(plane: ControlPlane) -> Peer:
    return Peer("real", plane.spec(), plane.compact, plane.spec)


async def _define(peer: Peer) -> None:
    """Create our kinds and wait until they are served."""
    bench = Bench(peer, "default")
    clock = SystemClock()
    try:
        for manifest in definitions():
            await bench.create(DEFINITIONS, manifest)
        deadline = clock.monotonic() + 30.0
        while not await _all_established(bench):
            assert clock.monotonic() < deadline, "the definitions are not established"
            await clock.sleep(0.1)
        for manifest in definitions():
            # A kind's cache is filled at its first use; a watch would be refused till then.
            await bench.get(_collection_of(manifest), resourceVersion="0")
    finally:
        await bench.aclose()


def _collection_of(definition: Document) -> str:
    spec = definition["spec"]
    return f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"


async def _all_established(bench: Bench) -> bool:
    found = (await bench.get(DEFINITIONS))["items"]
    return all(
        any(
            c["type"] == "Established" and c["status"] == "True"
            for c in definition.get("status", {}).get("conditions") or ()
        )
        for definition in found
    )
