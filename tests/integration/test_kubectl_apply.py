"""kubectl apply and diff, client-side and server-side."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.kubectl import Kubectl
from tests.integration.manifests import config_map, deployment

pytestmark = pytest.mark.kubectl


def test_apply_creates_then_configures_then_changes_nothing(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=deployment()).endswith(" created\n")
    assert kubectl("apply", "-f", "-", stdin=deployment()).endswith(" unchanged\n")
    changed = deployment(replicas=5, paused=True)
    assert kubectl("apply", "-f", "-", stdin=changed).endswith(" configured\n")
    assert kubectl("apply", "-f", "-", stdin=deployment(replicas=5)).endswith(" configured\n")
    spec = kubectl.json("get", "mcd", "d")["spec"]
    assert spec["replicas"] == 5
    assert "paused" not in spec


def test_apply_merges_a_built_in_kinds_lists_by_key(kubectl: Kubectl) -> None:
    def workload(*containers: dict[str, Any]) -> dict[str, Any]:
        return {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "w"},
            "spec": {
                "selector": {"matchLabels": {"a": "b"}},
                "template": {
                    "metadata": {"labels": {"a": "b"}},
                    "spec": {"containers": list(containers)},
                },
            },
        }

    kubectl("apply", "-f", "-", stdin=workload({"name": "x", "image": "1"}))
    kubectl("set", "env", "deployment/w", "LEVEL=debug")
    kubectl("patch", "deployment", "w", "-p", _with_sidecar())
    kubectl("apply", "-f", "-", stdin=workload({"name": "x", "image": "2"}))
    spec = kubectl.json("get", "deployment", "w")["spec"]["template"]["spec"]
    assert sorted((c["name"], c["image"]) for c in spec["containers"]) == [
        ("side", "s"),
        ("x", "2"),
    ]
    env = [c["env"] for c in spec["containers"] if c["name"] == "x"]
    assert env == [[{"name": "LEVEL", "value": "debug"}]]
    kubectl("set", "image", "deployment/w", "x=3")
    assert "3" in kubectl("get", "deployment", "w", "-o", "wide")


def _with_sidecar() -> str:
    return '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"s"}]}}}}'


def test_apply_with_prune_and_dry_run_leaves_what_it_must(kubectl: Kubectl) -> None:
    out = kubectl("apply", "--dry-run=server", "-f", "-", stdin=deployment())
    assert out.endswith(" created (server dry run)\n")
    assert "NotFound" in kubectl.fails("get", "mcd", "d")
    both = [config_map("keep", a="1"), config_map("drop", a="1")]
    for manifest in both:
        manifest["metadata"]["labels"] = {"set": "x"}
    kubectl("apply", "-f", "-", stdin=both)
    prune = ("apply", "--prune", "-l", "set=x", "--prune-allowlist=core/v1/ConfigMap")
    assert "configmap/drop pruned" in kubectl(*prune, "-f", "-", stdin=both[:1])


def test_server_side_apply_keeps_owners_and_shows_conflicts(kubectl: Kubectl) -> None:
    apply = ("apply", "--server-side", "-f", "-")
    assert kubectl(*apply, stdin=deployment()).endswith(" serverside-applied\n")
    before = kubectl.json("get", "mcd", "d")["metadata"]["resourceVersion"]
    kubectl(*apply, stdin=deployment())
    assert kubectl.json("get", "mcd", "d")["metadata"]["resourceVersion"] == before

    other = (*apply, "--field-manager=other")
    complaint = kubectl.fails(*other, stdin=deployment(replicas=7))
    assert 'conflict with "kubectl": .spec.replicas' in complaint
    kubectl(*other, "--force-conflicts", stdin=deployment(replicas=7))
    assert kubectl.json("get", "mcd", "d")["spec"]["replicas"] == 7
    shown = kubectl("get", "mcd", "d", "-o", "yaml", "--show-managed-fields")
    assert "manager: other" in shown and "f:replicas: {}" in shown


def test_server_side_apply_takes_over_from_client_side(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=deployment())
    kubectl("apply", "--server-side", "-f", "-", stdin=deployment(replicas=4))
    entries = kubectl.json("get", "mcd", "d", "--show-managed-fields")["metadata"]["managedFields"]
    assert ("kubectl", "Apply") in {(e["manager"], e["operation"]) for e in entries}
    assert "kubectl-client-side-apply" not in {e["manager"] for e in entries}
    assert kubectl.json("get", "mcd", "d")["spec"]["replicas"] == 4


@pytest.mark.parametrize("mode", [[], ["--server-side"]])
def test_diff_shows_what_an_apply_would_change(kubectl: Kubectl, mode: list[str]) -> None:
    kubectl("apply", *mode, "-f", "-", stdin=deployment())
    assert kubectl.run("diff", *mode, "-f", "-", stdin=deployment()).code == 0
    outcome = kubectl.run("diff", *mode, "-f", "-", stdin=deployment(replicas=9))
    assert outcome.code == 1
    assert "-  replicas: 3" in outcome.out and "+  replicas: 9" in outcome.out
    assert kubectl.json("get", "mcd", "d")["spec"]["replicas"] == 3
