"""kubectl wait, delete and drain."""

from __future__ import annotations

import pytest

from tests.integration.background import BackgroundServer
from tests.integration.kubectl import Kubectl
from tests.integration.manifests import child_of, config_map, deployment, node, pod_on, rows

pytestmark = pytest.mark.kubectl


def owner_with_child(kubectl: Kubectl, **flags: bool) -> None:
    kubectl("create", "configmap", "owner")
    owner = kubectl.json("get", "cm", "owner")
    kubectl("create", "-f", "-", stdin=child_of(owner, "child", **flags))


def test_wait_ends_with_a_field_a_condition_or_a_deletion(
    kubectl: Kubectl, background: BackgroundServer
) -> None:
    kubectl("create", "-f", "-", stdin=deployment("x"))
    with kubectl.started(
        "wait", "--for=jsonpath={.spec.replicas}=5", "mcd/x", "--timeout=20s"
    ) as w:
        background.wait_for_watches(1)
        kubectl("scale", "mcd", "x", "--replicas=5")
        assert w.until("condition met")
    background.wait_for_watches(0)
    with kubectl.started("wait", "--for=condition=Available", "mcd/x", "--timeout=20s") as w:
        background.wait_for_watches(1)
        condition = (
            '{"status":{"conditions":[{"type":"Available","status":"True",'
            '"lastTransitionTime":"2026-01-01T00:00:00Z",'
            '"lastUpdateTime":"2026-01-01T00:00:00Z"}]}}'
        )
        kubectl("patch", "mcd", "x", "--subresource=status", "--type=merge", "-p", condition)
        assert w.until("condition met")
    background.wait_for_watches(0)
    with kubectl.started("wait", "--for=delete", "mcd/x", "--timeout=20s") as w:
        background.wait_for_watches(1)
        kubectl("delete", "mcd", "x")
        assert w.until("condition met")


def test_orphans_outlive_their_owner(kubectl: Kubectl) -> None:
    owner_with_child(kubectl)
    kubectl("delete", "cm", "owner", "--cascade=orphan", "--wait=false")
    child = kubectl.json("get", "cm", "child")
    assert child["metadata"]["name"] == "child"


@pytest.mark.parametrize("mode", ["background", "foreground"])
def test_a_cascading_delete_takes_dependents_along(kubectl: Kubectl, mode: str) -> None:
    owner_with_child(kubectl, blockOwnerDeletion=True)
    with kubectl.started("wait", "--for=delete", "cm/child", "--timeout=20s") as wait:
        deleted = kubectl("delete", "cm", "owner", f"--cascade={mode}")
        assert deleted == 'configmap "owner" deleted\n'
        wait.process.wait(20)
    assert "NotFound" in kubectl.fails("get", "cm", "owner")
    assert kubectl("get", "cm", "-o", "name") == ""


def test_a_delete_waits_for_finalizers(kubectl: Kubectl) -> None:
    manifest = config_map("held")
    manifest["metadata"]["finalizers"] = ["example.com/hold"]
    kubectl("create", "-f", "-", stdin=manifest)
    with kubectl.started("delete", "cm", "held") as delete:
        assert delete.until("deleted")
        assert kubectl.json("get", "cm", "held")["metadata"]["deletionTimestamp"]
        kubectl("patch", "cm", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
        assert delete.process.wait(20) == 0
    assert "NotFound" in kubectl.fails("get", "cm", "held")


def test_deletes_take_selectors_files_and_everything(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[config_map("a"), config_map("b"), config_map("c")])
    kubectl("label", "cm", "a", "x=y")
    assert kubectl("delete", "cm", "-l", "x=y") == 'configmap "a" deleted\n'
    assert "deleted" in kubectl("delete", "-f", "-", stdin=config_map("b"))
    assert "deleted" in kubectl("delete", "cm", "--all")
    assert kubectl("get", "cm", "-o", "name") == ""
    assert kubectl("delete", "cm", "c", "--ignore-not-found") == ""


def test_a_node_is_cordoned_tainted_and_described(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=node("n-1"))
    assert rows(kubectl("get", "node", "n-1"))[0][:3] == ["n-1", "Ready", "worker"]
    assert "10.0.0.1" in kubectl("get", "node", "n-1", "-o", "wide")
    assert kubectl("cordon", "n-1") == "node/n-1 cordoned\n"
    assert "Ready,SchedulingDisabled" in kubectl("get", "node", "n-1")
    assert kubectl("uncordon", "n-1") == "node/n-1 uncordoned\n"
    assert kubectl("taint", "node", "n-1", "a=b:NoSchedule") == "node/n-1 tainted\n"
    assert "a=b:NoSchedule" in kubectl("describe", "node", "n-1")
    assert kubectl("taint", "node", "n-1", "a-") == "node/n-1 untainted\n"
    kubectl("delete", "node", "n-1")


def test_a_drain_evicts_and_obeys_budgets(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[node("n-2"), pod_on("n-2", "a")])
    running = '{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}]}}'
    kubectl("patch", "pod", "a", "--subresource=status", "-p", running)
    kubectl("create", "pdb", "p", "--selector=app=x", "--min-available=1")
    observed = '{"status":{"currentHealthy":1,"desiredHealthy":1,"observedGeneration":1}}'
    kubectl("patch", "pdb", "p", "--subresource=status", "--type=merge", "-p", observed)
    drain = ("drain", "n-2", "--force", "--grace-period=0", "--timeout=1s")
    assert "violate the pod's disruption budget" in kubectl.fails(*drain)
    kubectl("delete", "pdb", "p")
    drained = kubectl("drain", "n-2", "--force", "--grace-period=0", "--timeout=20s")
    assert "pod/a evicted" in drained and "node/n-2 drained" in drained
    assert kubectl("get", "pods", "-o", "name") == ""
    kubectl("delete", "node", "n-2")
