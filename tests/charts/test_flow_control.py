"""Which requests the chart has API servers queue apart, of whom, and on which level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.charts.helm_binary import CHART, Helm, Manifest
from tests.charts.test_rendering import FILES, VALUES, of, rendered

_GROUP = "flowcontrol.apiserver.k8s.io/v1"
_ON = ("--set", "flowControl.enabled=true")
_NAMED = (*_ON, "--set", "flowControl.priorityLevel.name=workload-high")


def flow(manifests: Sequence[Manifest]) -> set[tuple[str, str]]:
    """Return kind and name of all that is about flow control."""
    return {
        (m["kind"], m["metadata"]["name"]) for m in manifests if m["apiVersion"].startswith("flow")
    }


def _subjects(schema: Manifest) -> list[Any]:
    (rule,) = schema["spec"]["rules"]
    subjects = rule["subjects"]
    assert isinstance(subjects, list)
    return subjects


@pytest.mark.parametrize("name", [name for name in FILES if name != "everything"])
def test_nothing_is_told_the_server_unless_asked_for(helm: Helm, name: str) -> None:
    assert flow(rendered(helm, name)) == set()


def test_requests_have_a_level_of_their_own_and_leases_another(helm: Helm) -> None:
    manifests = rendered(helm, "one-cluster", *_ON)
    assert flow(manifests) == {
        ("PriorityLevelConfiguration", "mcm.mcm"),
        ("FlowSchema", "mcm.mcm-requests"),
        ("FlowSchema", "mcm.mcm-leases"),
    }
    requests, leases = (of(manifests, "FlowSchema", end) for end in ("-requests", "-leases"))
    assert requests["apiVersion"] == leases["apiVersion"] == _GROUP
    assert requests["spec"]["priorityLevelConfiguration"] == {"name": "mcm.mcm"}
    assert leases["spec"]["priorityLevelConfiguration"] == {"name": "leader-election"}
    account = {"kind": "ServiceAccount", "serviceAccount": {"name": "mcm", "namespace": "mcm"}}
    assert _subjects(requests) == _subjects(leases) == [account]
    # The lowest precedence wins: a lease is a lease first.
    assert leases["spec"]["matchingPrecedence"] == requests["spec"]["matchingPrecedence"] - 1


def test_leases_are_told_by_the_namespace_of_the_machines(helm: Helm) -> None:
    """Those of kubelets, which the simulated cloud renews, are the fleet's load."""
    manifests = rendered(helm, "two-clusters", *_ON)
    (rule,) = of(manifests, "FlowSchema", "-leases")["spec"]["rules"]
    (resources,) = rule["resourceRules"]
    assert resources["namespaces"] == ["shoot--team--prod"]
    assert resources["resources"] == ["leases"]
    assert "clusterScope" not in resources


def test_the_numbers_of_the_values_are_those_of_the_level(helm: Helm) -> None:
    numbers = {
        "nominalConcurrencyShares": 7,
        "lendablePercent": 0,
        "queues": 8,
        "handSize": 2,
        "queueLengthLimit": 10_000,
    }
    values = {"enabled": True, "matchingPrecedence": 8999, "priorityLevel": numbers}
    manifests = helm.template(values={"flowControl": values})
    limited = of(manifests, "PriorityLevelConfiguration")["spec"]["limited"]
    response = limited.pop("limitResponse")
    assert response["type"] == "Queue"
    assert {**limited, **response["queuing"]} == numbers
    assert of(manifests, "FlowSchema", "-requests")["spec"]["matchingPrecedence"] == 8999


def test_a_level_that_is_there_is_used_and_none_is_made(helm: Helm) -> None:
    manifests = rendered(helm, "one-cluster", *_NAMED)
    assert {kind for kind, _ in flow(manifests)} == {"FlowSchema"}
    level = of(manifests, "FlowSchema", "-requests")["spec"]["priorityLevelConfiguration"]
    assert level == {"name": "workload-high"}


@pytest.mark.parametrize(
    ("name", "schemas"),
    [
        ("one-cluster", {"requests", "leases"}),
        ("two-clusters", {"requests", "leases"}),
        ("no-target", {"requests", "leases"}),
        ("in-cluster-target", {"requests"}),
        ("both-elsewhere", set()),
    ],
)
def test_a_cluster_is_told_of_what_it_will_be_asked(
    helm: Helm, name: str, schemas: set[str]
) -> None:
    found = {own for kind, own in flow(rendered(helm, name, *_ON)) if kind == "FlowSchema"}
    assert {own.rpartition("-")[2] for own in found} == schemas


def test_without_leader_election_there_are_no_leases(helm: Helm) -> None:
    off = ("--set", "leaderElection.enabled=false,replicaCount=1")
    assert len(flow(rendered(helm, "one-cluster", *_NAMED, *off))) == 1


def test_roles_alone_come_with_schemas_for_whom_they_are(helm: Helm) -> None:
    manifests = rendered(helm, "access", *_ON)
    user = {"kind": "User", "user": {"name": "machine-controller-manager"}}
    for end in ("-requests", "-leases"):
        assert _subjects(of(manifests, "FlowSchema", end)) == [user]
    group = {"kind": "Group", "name": "managers", "apiGroup": "rbac.authorization.k8s.io"}
    account = {"kind": "ServiceAccount", "name": "mcm", "namespace": "elsewhere"}
    access = {"control": False, "target": True, "subjects": [group, account]}
    values = {"mode": "access", "access": access, "flowControl": {"enabled": True}}
    manifests = helm.template(values=values)
    assert _subjects(of(manifests, "FlowSchema")) == [
        {"kind": "Group", "group": {"name": "managers"}},
        {"kind": "ServiceAccount", "serviceAccount": {"name": "mcm", "namespace": "elsewhere"}},
    ]


def test_a_server_that_is_too_old_is_named(helm: Helm) -> None:
    file = f"--values={VALUES / 'one-cluster.yaml'}"
    said = helm.fails("template", "mcm", str(CHART), file, *_ON, "--kube-version=1.28.15")
    assert "flowControl.enabled: this cluster (v1.28.15) does not serve " in said
    assert flow(rendered(helm, "one-cluster", *_ON, "--kube-version=1.29.0-gke.7"))
    elsewhere = rendered(helm, "both-elsewhere", *_ON, "--kube-version=1.28.15")
    assert flow(elsewhere) == set(), "nothing is told to this cluster, however old it is"
