"""The command as a whole: what it asks, how it ends, and that it writes nothing."""

from __future__ import annotations

import json

import pytest
import yaml

from mcm.api.crds import crd_manifests
from mcm.client.errors import ConnectionRefused
from mcm.client.transport import Request, Response
from mcm.clock import SystemClock
from mcm.preflight.read_only import REVIEWS, ReadOnlyTransport
from mcm.providers.simulated import virtual_machine
from mcm.sandbox import samples
from tests.unit.preflight.typing_at import Typing, Watched

KINDS = [*crd_manifests(), virtual_machine.crd_manifest()]
GO = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: mcm-of-go, namespace: default}
spec:
  selector: {matchLabels: {app: mcm}}
  template:
    metadata: {labels: {app: mcm}}
    spec:
      containers:
      - name: sets
        image: registry/machine-controller-manager:v0.60.0
        command: [./machine-controller-manager, --namespace=default, --concurrent-syncs=20]
      - name: machines
        image: registry/machine-controller-manager-provider-x:v1
        command: [./machine-controller, --machine-creation-timeout=20m, --concurrent-syncs, "60"]
"""


def test_an_empty_cluster_lacks_the_kinds_and_is_told_so_all_at_once(cluster: Typing) -> None:
    result = cluster.type()
    assert result.exit_code == 3
    for manifest in KINDS:
        assert f"{manifest['metadata']['name']}: is not installed" in result.stdout  # type: ignore[index]
    assert "to do: mcm crds | kubectl apply -f -" in result.stdout
    assert "all that is needed is granted" in result.stdout, "no check stops another"
    assert "nobody" in result.stdout or "is not there" in result.stdout


def test_a_good_cluster_is_found_good_and_not_changed(cluster: Typing) -> None:
    cluster.put([*KINDS, *samples.load()])
    before = cluster.server.store.revision
    result = cluster.type()
    assert result.exit_code == 0, result.stdout
    assert "PROBLEMS" not in result.stdout
    assert "0 problems" in result.stdout
    assert cluster.server.store.revision == before
    assert {"GET", "POST"} == {method for method, _ in cluster.transport.asked}
    assert {path for method, path in cluster.transport.asked if method == "POST"} == {REVIEWS}
    namespaces = [path for _, path in cluster.transport.asked if path.endswith("/secrets")]
    assert not namespaces, "no secret is read"


def test_programs_read_the_same_findings(cluster: Typing) -> None:
    result = cluster.type("-o", "json")
    found = json.loads(result.stdout)
    assert result.exit_code == 3
    assert found["problems"] == len([f for f in found["findings"] if f["outcome"] == "problem"])
    assert set(found["findings"][0]) == {"outcome", "check", "subject", "text", "remedy"}
    assert all(f["remedy"] for f in found["findings"] if f["outcome"] == "problem")


def test_a_cluster_out_of_reach_ends_with_1(cluster: Typing) -> None:
    cluster.transport.answers["/version"] = ConnectionRefused("connection refused: 127.0.0.1:1")
    result = cluster.type()
    assert result.exit_code == 1
    assert "connection refused: 127.0.0.1:1" in result.stdout
    assert "check --control-kubeconfig" in result.stdout


def test_a_wrong_command_line_ends_with_2(cluster: Typing) -> None:
    assert cluster.type("--namespace", "NO").exit_code == 2
    assert cluster.type("--go-manager-args", "-", stdin="nothing").exit_code == 2
    assert cluster.transport.asked == []


def test_what_may_not_be_read_is_told_and_the_rest_is_checked(cluster: Typing) -> None:
    cluster.put([*KINDS, *samples.load()])
    forbidden = Response(403, {}, b'{"reason": "Forbidden", "message": "no list for you"}')
    cluster.transport.answers["/api/v1/nodes"] = forbidden
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for manifest in KINDS:
        cluster.transport.answers[f"{crds}/{manifest['metadata']['name']}"] = forbidden  # type: ignore[index]
    result = cluster.type()
    assert result.exit_code == 3
    assert "nodes: cannot be read: no list for you" in result.stdout
    assert "its schema cannot be compared: no list for you" in result.stdout
    assert "is not installed" not in result.stdout
    assert "machinedeployments: 1, none that the manager would refuse" in result.stdout


def test_rights_that_lack_are_named_with_their_verbs(cluster: Typing) -> None:
    cluster.put(KINDS)
    cluster.transport.denied = lambda asked: (
        (asked["resource"] == "machines" and asked["verb"] in {"patch", "delete"})
        or asked["resource"] == "horizontalpodautoscalers"
    )
    assert [text for text in cluster.said("problem") if "may not" in text] == [
        "control cluster, namespace default: may not delete, patch machines.machine.sapcloud.io",
        "control cluster, namespace default: may not patch machines/status.machine.sapcloud.io",
    ]
    assert [text for text in cluster.said("warning") if "may not" in text] == [
        (
            "control cluster: may not list horizontalpodautoscalers.autoscaling: "
            "no pod gets a successor before it is drained"
        )
    ]


def test_only_what_the_chosen_controllers_need_is_asked_about(cluster: Typing) -> None:
    cluster.put(KINDS)
    cluster.transport.denied = lambda asked: (
        asked["resource"] in {"secrets", "pods"} or asked.get("name") == "machine-controller"
    )
    assert cluster.said("problem", "--controllers=set-controllers") == []
    shard = ("--shard-name=a", "--shard-selector=shard=a")
    leases = [f["subject"] for f in cluster.findings(*shard) if f["check"] == "lease"]
    assert leases == [
        "default/machine-controller-manager-a",
        "default/machine-controller-a",
        "default/machine-controller-manager",
        "default/machine-controller",
    ]
    told = cluster.said("problem", "--controllers=machine-controllers")
    assert any("may not list, patch, watch secrets" in t for t in told)
    assert any("get, update leases.coordination.k8s.io machine-controller" in t for t in told)


def test_an_object_that_the_manager_refuses_is_named_with_its_field(cluster: Typing) -> None:
    documents = samples.load()
    for document in documents:
        if document["kind"] == "MachineDeployment":
            spec = document["spec"]
            assert isinstance(spec, dict)
            spec["selector"] = {"matchLabels": {"else": "where"}}
    cluster.put([*KINDS, *documents])
    (said,) = cluster.said("problem")
    assert said.startswith("MachineDeployment default/sample: spec.selector")


def test_other_managers_and_their_flags_are_seen(cluster: Typing) -> None:
    cluster.put([*KINDS, yaml.safe_load(GO)])
    assert any("mcm-of-go: runs machine-controller, machine-controller-manager" in w
               for w in cluster.said("warning"))  # fmt: skip
    result = cluster.type("--go-manager-args", "-", stdin=GO)
    assert "is --machine-concurrent-syncs here" in result.stdout
    assert (
        "mcm run --namespace=default --concurrent-syncs=20 --machine-creation-timeout=20m "
        "--machine-concurrent-syncs=60"
    ) in result.stdout


async def test_nothing_but_reads_and_reviews_passes() -> None:
    carried: list[str] = []

    class Inner(Watched):
        def __init__(self) -> None:
            """There is no server."""

        async def request(self, request: Request) -> Response:
            carried.append(request.method)
            return Response(200, {}, b"{}")

    transport = ReadOnlyTransport(Inner(), clock=SystemClock())
    await transport.request(Request("GET", "/version"))
    await transport.request(Request("POST", REVIEWS))
    for method, path in [
        ("POST", "/api/v1/nodes"),
        ("PUT", REVIEWS),
        ("PATCH", "/api/v1/nodes/n"),
        ("DELETE", "/api/v1/nodes/n"),
        ("POST", f"{REVIEWS}/x"),
    ]:
        with pytest.raises(PermissionError):
            await transport.request(Request(method, path))
    with pytest.raises(PermissionError):
        transport.stream(Request("GET", "/api/v1/nodes"))
    assert carried == ["GET", "POST"]
