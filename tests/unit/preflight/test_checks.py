"""Each check on states that a cluster may be in."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mcm.api.crds import crd_manifests
from mcm.api.timestamps import rfc3339
from mcm.client.transport import Request, Response
from mcm.clock import Clock
from mcm.options import Clusters, LeaderElection, Options, Sharding
from mcm.preflight.checks.crds import check_crds
from mcm.preflight.checks.fleet import check_fleet
from mcm.preflight.checks.leases import check_leases
from mcm.preflight.checks.nodes import check_nodes
from mcm.preflight.checks.servers import check_servers
from mcm.preflight.checks.surroundings import check_surroundings
from mcm.preflight.finding import Finding, Outcome
from mcm.preflight.read_only import ReadOnlyTransport
from mcm.preflight.seen import Seen, Server
from tests.unit.preflight.typing_at import Watched

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SERVER = Server("control", "v1.33.0", timedelta(0))
NOTHING = Seen(options=Options(), now=NOW, servers=(SERVER,))
MIDNIGHT = "2026-01-01T00:00:00.000000Z"
OURS = "pod-1_0b4bd54b-3b3c-4e09-9c64-2b1a2f0f8b11"


def outcomes(findings: Any) -> list[tuple[str, str, str]]:
    return [(f.outcome.value, f.subject, f.text) for f in findings]


def only(findings: Any, outcome: Outcome) -> list[Finding]:
    return [f for f in findings if f.outcome is outcome]


def machine(name: str = "m", phase: str = "Running", **meta: Any) -> dict[str, Any]:
    return of("Machine", name, {"currentStatus": {"phase": phase}}, **meta)


def of(kind: str, name: str, status: Any = None, spec: Any = None, **meta: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", **meta}
    return {"kind": kind, "metadata": metadata, "spec": spec or {}, "status": status or {}}


# ---- server --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        (None, []),
        (timedelta(seconds=2), []),
        (timedelta(seconds=3), [Outcome.WARNING]),
        (-timedelta(seconds=3), [Outcome.WARNING]),
        (timedelta(seconds=6), [Outcome.PROBLEM]),
    ],
)
def test_clocks_are_held_against_the_leases(
    ahead: timedelta | None, expected: list[Outcome]
) -> None:
    seen = replace(NOTHING, servers=(replace(SERVER, ahead=ahead),))
    assert [f.outcome for f in check_servers(seen)] == [Outcome.OK, *expected]


class _FixedClock(Clock):
    def now(self) -> datetime:
        return NOW


@pytest.mark.parametrize(
    ("date", "ahead"),
    [
        ("Thu, 01 Jan 2026 12:00:00 GMT", timedelta(0)),
        ("Thu, 01 Jan 2026 11:59:59 GMT", timedelta(0)),
        ("Thu, 01 Jan 2026 12:00:10 GMT", timedelta(seconds=10)),
        ("Thu, 01 Jan 2026 11:59:49 GMT", timedelta(seconds=-10)),
        ("", None),
        ("yesterday", None),
    ],
)
async def test_a_header_cut_to_seconds_is_believed_that_far(
    date: str, ahead: timedelta | None
) -> None:
    class Inner(Watched):
        def __init__(self) -> None:
            """There is no server."""

        async def request(self, request: Request) -> Response:
            return Response(200, {"date": date}, b"{}")

    transport = ReadOnlyTransport(Inner(), clock=_FixedClock())  # type: ignore[abstract]
    await transport.request(Request("GET", "/version"))
    assert transport.ahead == ahead


# ---- CRDs ----------------------------------------------------------------------------------------


def crd(plural: str = "machines") -> dict[str, Any]:
    name = f"{plural}.machine.sapcloud.io"
    (found,) = (deepcopy(m) for m in crd_manifests() if m["metadata"]["name"] == name)  # type: ignore[index]
    return {**found, "status": {"conditions": [{"type": "Established", "status": "True"}]}}


def said_of(found: dict[str, Any]) -> list[tuple[str, str]]:
    name = found["metadata"]["name"]
    return [(f.outcome.value, f.text) for f in check_crds(replace(NOTHING, crds={name: found}))]


def test_our_own_definition_holds_all_that_is_written() -> None:
    ((outcome, _),) = said_of(crd())
    assert outcome == "ok"


def test_a_field_that_the_server_would_drop_is_named() -> None:
    found = crd()
    schema = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["status"]["properties"]["lastOperation"]["properties"]["errorCode"]
    assert said_of(found) == [
        ("warning", "the server drops or refuses status.lastOperation.errorCode")
    ]
    schema["properties"]["status"]["x-kubernetes-preserve-unknown-fields"] = True
    schema["properties"]["status"].pop("properties")
    assert said_of(found)[0][0] == "ok"


def test_another_type_is_named() -> None:
    found = crd()
    spec = found["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["providerID"]["type"] = "integer"
    assert said_of(found) == [
        ("warning", "the server drops or refuses spec.providerID (is integer, not string)")
    ]


def test_what_makes_a_definition_unusable_is_a_problem() -> None:
    found = crd()
    del found["spec"]["versions"][0]["subresources"]
    assert ("problem", "has no subresource status") in said_of(found)
    found = crd()
    found["spec"]["versions"][0]["name"] = "v1beta1"
    assert said_of(found) == [("problem", "does not serve v1alpha1")]
    found = crd()
    found["status"] = {}
    assert said_of(found) == [("problem", "is not established")]
    found = crd()
    found["spec"]["scope"] = "Cluster"
    assert said_of(found) == [("problem", "is Cluster, not Namespaced")]


def test_versions_beside_ours_are_told_of() -> None:
    found = crd()
    found["spec"]["versions"][0]["storage"] = False
    found["spec"]["versions"].append({"name": "v1", "served": True, "storage": True})
    found["spec"]["conversion"] = {"strategy": "Webhook"}
    assert [outcome for outcome, _ in said_of(found)] == ["warning", "warning"]


# ---- leases --------------------------------------------------------------------------------------


def lease(holder: str | None, *, ago: float = 1, renewed: str = "") -> dict[str, Any]:
    return {
        "metadata": {"name": "machine-controller"},
        "spec": {
            "holderIdentity": holder,
            "leaseDurationSeconds": 15,
            "acquireTime": MIDNIGHT,
            "renewTime": renewed or rfc3339(NOW - timedelta(seconds=ago)),
        },
    }


@pytest.mark.parametrize(
    ("found", "outcome", "text"),
    [
        (None, "ok", "is not there; whoever leads first makes it"),
        (lease(""), "ok", "nobody holds it"),
        (lease(None), "ok", "nobody holds it"),
        (
            lease("go-host-6d8f"),
            "warning",
            f"a Go process, go-host-6d8f, holds it since {MIDNIGHT} and renewed it 1 s ago",
        ),
        (
            lease("go-host-6d8f", ago=20),
            "ok",
            "a Go process, go-host-6d8f, held it and has not renewed it since 20 s ago: it is free",
        ),
        (
            lease(OURS),
            "ok",
            f"a manager of ours, {OURS}, holds it since {MIDNIGHT} and renewed it 1 s ago",
        ),
        (lease("x", renewed="soon"), "problem", "x holds it, at a time that cannot be read"),
    ],
)
def test_who_leads(found: Any, outcome: str, text: str) -> None:
    seen = replace(NOTHING, leases={"machine-controller": found})
    assert outcomes(check_leases(seen)) == [(outcome, "default/machine-controller", text)]


def test_the_server_s_clock_tells_how_old_a_lease_is() -> None:
    behind = replace(SERVER, ahead=timedelta(seconds=-30))
    seen = replace(NOTHING, servers=(behind,), leases={"l": lease("go", ago=31)})
    assert [f.outcome for f in check_leases(seen)] == [Outcome.WARNING]


def test_shards_are_told_from_go_processes() -> None:
    leases = {"machine-controller": lease("mcm-shards")}
    (found,) = check_leases(replace(NOTHING, leases=leases))
    assert found.outcome is Outcome.WARNING and "stop all shards" in found.remedy
    assert found.text == "shards hold it together and renewed it 1 s ago"
    shard = Options(sharding=Sharding("a", "pool=a"))
    (found,) = check_leases(replace(NOTHING, leases=leases, options=shard))
    assert found.outcome is Outcome.OK and "Go" not in found.text


def test_no_leader_election_is_told_of() -> None:
    options = Options(leader_election=LeaderElection(enabled=False))
    assert [f.subject for f in check_leases(replace(NOTHING, options=options))] == [
        "--leader-elect"
    ]


# ---- fleet ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["Failed", "CrashLoopBackOff", "Unknown", "InPlaceUpdateFailed"])
def test_machines_in_trouble_are_named(phase: str) -> None:
    seen = replace(NOTHING, machines=[machine("bad", phase), machine("good")])
    (said,) = only(check_fleet(seen), Outcome.WARNING)
    assert said.subject == "Machine default/bad"
    assert said.text.startswith(f"is {phase}")


def test_what_ours_treats_otherwise_is_told() -> None:
    seen = replace(
        NOTHING,
        machines=[
            machine("kept", annotations={"node.machine.sapcloud.io/preserve": "now"}),
            machine("forced", labels={"force-deletion": "True"}, deletionTimestamp="x"),
            machine("held", finalizers=["somebody.else/x"]),
        ],
        machine_sets=[
            of("MachineSet", "frozen", labels={"freeze": "True"}),
            of("MachineSet", "old", labels={"node.machine.sapcloud.io/scale-up-disabled": "true"}),
        ],
        machine_deployments=[
            of("MachineDeployment", "slow", spec={"minReadySeconds": 30, "paused": True}),
            of("MachineDeployment", "rolling", {"replicas": 3, "updatedReplicas": 1}),
        ],
    )
    told = {f.subject.rpartition("/")[2]: f.text for f in check_fleet(seen)}
    assert "kept on" in told["kept"]
    assert "by force" in told["forced"]
    assert "somebody.else/x" in told["held"]
    assert "is frozen" in told["frozen"]
    assert "never takes off" in told["old"]
    assert "carried on" in told["rolling"]
    slow = [f.text for f in check_fleet(seen) if f.subject.endswith("slow")]
    assert "is paused, and stays so" in slow
    assert any("minReadySeconds is 30: the Go original ignores it" in text for text in slow)


def test_classes_of_old_kinds_are_a_problem_where_they_are_used() -> None:
    template = {"template": {"spec": {"class": {"kind": "AWSMachineClass", "name": "c"}}}}
    seen = replace(
        NOTHING,
        old_classes={"awsmachineclasses": [of("AWSMachineClass", "c")]},
        machine_deployments=[of("MachineDeployment", "d", spec=template)],
    )
    found = list(check_fleet(seen))
    assert [f.subject for f in only(found, Outcome.WARNING)] == ["awsmachineclasses"]
    assert [f.subject for f in only(found, Outcome.PROBLEM)] == ["MachineDeployment default/d"]


# ---- nodes and what is beside --------------------------------------------------------------------


def node(name: str, **meta: Any) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name, **meta}}


def test_whose_nodes_they_are() -> None:
    finalizers = ["node.machine.sapcloud.io/machine-controller"]
    seen = replace(
        NOTHING,
        machines=[machine("a", labels={"node": "n1"}), machine("b", labels={"node": "n1"})],
        nodes=[node("n1"), node("left", finalizers=finalizers), node("other")],
    )
    found = list(check_nodes(seen))
    assert [f.subject for f in only(found, Outcome.PROBLEM)] == ["Node n1"]
    assert [f.subject for f in only(found, Outcome.WARNING)] == ["Node left"]
    assert only(found, Outcome.OK)[0].text == "3, of which 1 belong to machines of this namespace"


def test_without_a_target_there_are_no_nodes_to_look_at() -> None:
    options = Options(clusters=Clusters(control_kubeconfig="x", target_kubeconfig="none"))
    assert [f.outcome for f in check_nodes(replace(NOTHING, options=options))] == [Outcome.OK]


def hook(group: str, policy: str) -> dict[str, Any]:
    return {
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "h"},
        "webhooks": [{"failurePolicy": policy, "rules": [{"apiGroups": [group]}]}],
    }


@pytest.mark.parametrize(
    ("group", "policy", "outcomes_"),
    [
        ("machine.sapcloud.io", "Fail", [Outcome.WARNING]),
        ("*", "Fail", [Outcome.WARNING]),
        ("machine.sapcloud.io", "Ignore", []),
        ("apps", "Fail", [Outcome.OK]),
    ],
)
def test_webhooks_in_the_way_are_told_of(group: str, policy: str, outcomes_: list[Outcome]) -> None:
    seen = replace(NOTHING, webhooks=[hook(group, policy)])
    assert [f.outcome for f in check_surroundings(seen)] == outcomes_


def workload(image: str, replicas: int = 1, command: tuple[str, ...] = ()) -> dict[str, Any]:
    container = {"image": image, "command": list(command)}
    spec = {"replicas": replicas, "template": {"spec": {"containers": [container]}}}
    return {"metadata": {"name": "d", "namespace": "default"}, "spec": spec}


@pytest.mark.parametrize(
    ("deployment", "told"),
    [
        (workload("reg.io:443/gardener/machine-controller-manager:v0.60"), True),
        (workload("reg/machine-controller-manager-provider-aws@sha256:0"), True),
        (workload("x", command=("./machine-controller",)), True),
        (workload("reg/machine-controller-manager", replicas=0), False),
        (workload("nginx"), False),
    ],
)
def test_other_managers_are_told_of(deployment: dict[str, Any], *, told: bool) -> None:
    found = check_surroundings(replace(NOTHING, deployments=[deployment]))
    assert any(f.subject == "Deployment d" for f in found) is told
