"""helm installs, tests, upgrades and uninstalls the chart on a server, and a fleet lives its life.

Pods run as processes of their own root and user; the manager has the rights of the rendered roles
and no others, and the namespace enforces the restricted standard of pod security.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from mcm.api.names import MACHINE_FINALIZER
from tests.charts.conftest import find_helm
from tests.charts.helm_binary import Helm
from tests.envtest.bench import MERGE, Bench, Document, Peer
from tests.envtest.contract.objects import machine_deployment, pod
from tests.envtest.installation import container
from tests.envtest.installation.sites import ACCESS, CERTIFICATE, Site, site, until_gone
from tests.envtest.installation.volumes import token_of
from tests.envtest.installation.workloads import run_workloads
from tests.envtest.lifecycle.fleet import Fleet

NAMESPACE = "installed"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATIENCE = 90.0


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    reason = container.why_impossible()
    if reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"no pod can be run here: {reason}", pytrace=False)
        pytest.skip(f"no pod can be run here: {reason}")
    return find_helm(tmp_path_factory)


@pytest.fixture
async def site_of_peer(peer: Peer, helm: Helm, tmp_path: Path) -> AsyncIterator[Site]:
    """Each of the two servers in turn, alone: the controllers that a chart needs run beside it."""
    admin = Bench(peer, NAMESPACE)
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    namespace = {"metadata": {"name": NAMESPACE, "labels": labels}}
    await admin.create("/api/v1/namespaces", namespace)
    workloads = asyncio.create_task(run_workloads(admin))
    try:
        async with site(admin, helm, tmp_path, asks_webhooks=peer.name == "real") as found:
            yield found
        assert not workloads.done(), "the controllers ended by themselves"
    finally:
        workloads.cancel()
        with suppress(asyncio.CancelledError):
            await workloads
        await admin.aclose()


@pytest.mark.timeout(300)
async def test_a_release_lives_its_life(site_of_peer: Site) -> None:
    await _life_of_a_release(site_of_peer)


async def _life_of_a_release(site: Site) -> None:
    fleet = Fleet(site.admin)
    said = await site.install(values=site.values())
    assert "Installed: 2 replica(s)" in said and "leaves alone: the CRDs" in said
    assert len(await site.replicas()) == 2
    await site.run_helm("test", "mcm")
    await _the_config_has_its_effect(site)
    await _invalid_objects_are_refused(site)
    await _life_of_a_fleet(site, fleet)
    assert await site.refused() == []

    before = await _certificate(site)
    await _upgrade(site)
    assert await _certificate(site) == before, "an upgrade keeps the certificate"
    await fleet.create(replicas=2)
    await fleet.until(lambda: fleet.runs(small=2), within=PATIENCE, what="two machines run")
    await _metrics_are_for_readers(site)

    await site.run_helm("uninstall", "mcm", "--wait")
    await _only_the_fleet_is_left(site, fleet)


async def _life_of_a_fleet(site: Site, fleet: Fleet) -> None:
    """Create, scale, roll with a drain, delete."""
    pods = "/api/v1/namespaces/default/pods"
    await fleet.create(replicas=2)
    await fleet.until(lambda: fleet.runs(small=2), within=PATIENCE, what="two machines run")
    await fleet.scale(3)
    await fleet.until(lambda: fleet.runs(small=3), within=PATIENCE, what="three machines run")
    node = (await fleet.nodes())[0]
    await site.admin.create(pods, pod("drained", {"app": "drained"}, nodeName=node))
    await fleet.roll_to("large")
    await fleet.until(lambda: fleet.runs(large=3), within=PATIENCE, what="all are of the new class")
    assert await site.admin.gone(f"{pods}/drained")
    await fleet.delete()
    await fleet.until(lambda: _is_empty(fleet), within=PATIENCE, what="nothing is left")
    await fleet.delete_classes()
    gone = site.admin.secrets("cloud")
    await fleet.until(lambda: site.admin.gone(gone), within=PATIENCE, what="its secret is released")
    assert await fleet.tokens() == []


async def _is_empty(fleet: Fleet) -> bool:
    return not (await fleet.machines() or await fleet.vms() or await fleet.nodes())


async def _invalid_objects_are_refused(site: Site) -> None:
    if not site.asks_webhooks:
        return
    invalid: Document = machine_deployment("invalid", replicas=1)
    invalid["spec"]["strategy"] = {"type": "AllAtOnce"}
    answer = await site.admin.send("POST", site.admin.deployments(), invalid)
    assert answer.status == 422 and b"validation.machine.sapcloud.io" in answer.text, answer.text


async def _the_config_has_its_effect(site: Site) -> None:
    """``manager.config`` is a file, and the process runs with what it says."""
    for replica in await site.replicas():
        status, text = await site.ask(replica, "/configz")
        flags = json.loads(text)
        assert status == 200
        place = "/etc/mcm/config/config.yaml:"
        from_file = {n: f["value"] for n, f in flags.items() if f["from"].startswith(place)}
        expected = {"machine-drain-timeout": "1h30m0s", "controllers": "*"}
        assert from_file == {**expected, "max-replicas": "1000000"}


async def _metrics_are_for_readers(site: Site) -> None:
    """Those whom the release names read them, by TLS; others with a token do not."""
    accounts = [f"/api/v1/namespaces/{home}/serviceaccounts/mcm" for home in (ACCESS, NAMESPACE)]
    reader, other = [await token_of(site.admin, account) for account in accounts]
    assert await site.refused(token=reader) == []
    replica = (await site.replicas())[0]
    assert (await site.ask(replica, "/metrics"))[0] == 401
    status, said = await site.ask(replica, "/metrics", token=other)
    assert status == 403 and "rest_client_requests_total" not in said


async def _certificate(site: Site) -> dict[str, Any]:
    data: dict[str, Any] = (await site.admin.get(site.admin.secrets(CERTIFICATE)))["data"]
    return data


async def _upgrade(site: Site) -> None:
    """Upgrade from one cluster to two, the second the same server under another identity, and
    guard the metrics on the way."""
    await site.install_access()
    await site.keep_target_kubeconfig()
    target = {"mode": "kubeconfig", "kubeconfigSecret": {"name": "target-kubeconfig"}}
    reader = {"kind": "ServiceAccount", "name": "mcm", "namespace": ACCESS}
    metrics = {
        "tls": {"enabled": True, "secretName": CERTIFICATE},
        "authorization": {"enabled": True, "readers": [reader]},
    }
    before = {each["metadata"]["name"] for each in await site.replicas()}
    assert not await site.admin.gone(f"{RBAC}/clusterroles/{NAMESPACE}.mcm-target")
    values = site.values(targetCluster=target, metrics=metrics)
    said = await site.install(command="upgrade", values=values)
    assert "Helm does not touch CRDs in an upgrade" in said
    assert not before & {each["metadata"]["name"] for each in await site.replicas()}
    # helm waits for the new ones alone. The old ones have lost their rights, and say so.
    await until_gone(site.admin, [site.admin.pods(name) for name in before])
    # What the manager's own account may do in the other cluster, it may no more.
    for kind in ("clusterroles", "clusterrolebindings"):
        assert await site.admin.gone(f"{RBAC}/{kind}/{NAMESPACE}.mcm-target")
    tokens = f"{RBAC}/namespaces/kube-system/roles/{NAMESPACE}.mcm-bootstrap-tokens"
    assert await site.admin.gone(tokens)


async def _only_the_fleet_is_left(site: Site, fleet: Fleet) -> None:
    admin = site.admin
    await fleet.until(lambda: _no_pods(site), within=PATIENCE, what="the replicas are gone")
    machines = await fleet.machines()
    assert len(machines) == len(await fleet.vms()) == len(await fleet.nodes()) == 2
    for machine in machines:
        assert MACHINE_FINALIZER in machine["metadata"]["finalizers"]
        assert "deletionTimestamp" not in machine["metadata"]
    assert len([n for n in await admin.names(DEFINITIONS) if "machine.sapcloud.io" in n]) == 5
    for kind in ("roles", "rolebindings"):
        assert await admin.names(f"{RBAC}/namespaces/{NAMESPACE}/{kind}") == []
    assert await admin.gone(f"{CONFIGURATIONS}/{NAMESPACE}.mcm")
    for kind in ("configmaps", "serviceaccounts", "services"):
        assert "mcm" not in " ".join(await admin.names(admin.path(kind)))
    await _throw_away(fleet)


async def _no_pods(site: Site) -> bool:
    return not await site.admin.names(site.admin.pods())


async def _throw_away(fleet: Fleet) -> None:
    """Nobody is left to take finalizers off."""
    admin, simulated = fleet.admin, "simulation.machine.sapcloud.io/v1alpha1"
    vms = admin.path("virtualmachines", group=simulated)
    kinds = ("machinedeployments", "machinesets", "machines", "machineclasses")
    for path in (*(fleet.path(kind) for kind in kinds), vms, "/api/v1/nodes", admin.secrets()):
        for name in await admin.names(path):
            await admin.send("DELETE", f"{path}/{name}")
            free = {"metadata": {"finalizers": None}}
            await admin.send("PATCH", f"{path}/{name}", free, media=MERGE)
