"""kubectl get, describe, events and explain."""

from __future__ import annotations

import re

import pytest

from tests.integration.kubectl import Kubectl
from tests.integration.manifests import columns, config_map, deployment, event, rows

pytestmark = pytest.mark.kubectl


def test_get_prints_the_servers_tables(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[deployment("w"), deployment("x", replicas=1)])
    table = kubectl("get", "mcd")
    assert columns(table)[0] == "NAME" and columns(table)[-1] == "AGE"
    assert [row[0] for row in rows(table)] == ["w", "x"]
    assert re.fullmatch(r"\d+s", rows(table)[0][-1])
    assert "team=a" in kubectl("get", "mcd", "--show-labels")
    assert kubectl.namespace in kubectl("get", "mcd", "-A", "--no-headers")
    assert rows(kubectl("get", "ns", "default"))[0][:2] == ["default", "Active"]


def test_get_prints_every_other_form(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("x"))
    assert kubectl("get", "mcd", "x", "-o", "name") == ("machinedeployment.machine.sapcloud.io/x\n")
    assert kubectl.json("get", "mcd")["kind"] == "List"
    assert "replicas: 3" in kubectl("get", "mcd", "x", "-o", "yaml")
    assert kubectl("get", "mcd", "x", "-o", "jsonpath={.spec.replicas}") == "3"
    own = kubectl("get", "mcd", "-o", "custom-columns=N:.metadata.name,R:.spec.replicas")
    assert rows(own) == [["x", "3"]]
    assert columns(kubectl("get", "mcd", "-o", "wide"))[0] == "NAME"
    assert "NotFound" in kubectl.fails("get", "mcd", "other")
    assert "doesn't have a resource type" in kubectl.fails("get", "unicorns")


def test_get_selects_by_labels_and_fields(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=[config_map("a"), config_map("b"), config_map("c")])
    kubectl("label", "configmap", "a", "tier=x")
    kubectl("label", "configmap", "b", "tier=y")

    def names(*args: str) -> list[str]:
        return kubectl("get", "cm", "-o", "name", *args).replace("configmap/", "").split()

    assert names("-l", "tier=x") == ["a"]
    assert names("-l", "tier in (x,y)") == ["a", "b"]
    assert names("-l", "!tier") == ["c"]
    assert names("-l", "tier!=x") == ["b", "c"]
    assert names("--field-selector", "metadata.name!=a") == ["b", "c"]
    kubectl("run", "p", "--image=i")
    assert (
        kubectl("get", "pods", "--field-selector=status.phase=Pending", "-o", "name") == "pod/p\n"
    )
    complaint = kubectl.fails("get", "cm", "--field-selector=data.x=1")
    assert "field label not supported" in complaint


def test_get_reads_long_lists_in_pages(kubectl: Kubectl) -> None:
    names = [f"n{number:02}" for number in range(25)]
    kubectl("create", "-f", "-", stdin=[config_map(name) for name in names])
    listed = kubectl("get", "cm", "-o", "name", "--chunk-size=10").split()
    assert listed == [f"configmap/{name}" for name in names]
    assert kubectl("get", "cm", "--chunk-size=7", "--no-headers").count("\n") == 25


def test_get_watches_tables(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("x"))
    with kubectl.started("get", "mcd", "-w") as watch:
        assert watch.until("NAME")
        assert watch.until("x")
        kubectl("scale", "mcd", "x", "--replicas=8")
        assert "8" in watch.until("x", "8")
        kubectl("create", "-f", "-", stdin=deployment("later"))
        assert watch.until("later")


def test_get_watches_events(kubectl: Kubectl) -> None:
    kubectl("create", "configmap", "old")
    with kubectl.started("get", "cm", "-w", "--output-watch-events") as watch:
        assert watch.until("ADDED", "old")
        kubectl("create", "configmap", "fresh")
        assert watch.until("ADDED", "fresh")
        kubectl("delete", "configmap", "fresh")
        assert watch.until("DELETED", "fresh")


def test_describe_shows_fields_and_events(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("x"))
    uid = kubectl.json("get", "mcd", "x")["metadata"]["uid"]
    kubectl("create", "-f", "-", stdin=event("MachineDeployment", "x", uid, kubectl.namespace))
    described = kubectl("describe", "mcd", "x")
    assert re.search(r"Replicas:\s+3", described)
    assert re.search(r"Warning\s+Stuck\s+\d+\w\s+tester\s+it does not move", described)


def test_events_are_listed_in_both_ways(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=event("Machine", "m", "u", kubectl.namespace))
    table = kubectl("get", "events")
    assert columns(table) == ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert rows(table)[0][1:] == ["Warning", "Stuck", "machine/m", "it does not move"]
    assert kubectl("get", "events", "--field-selector=involvedObject.name=m", "-o", "name")
    assert "it does not move" in kubectl("events", "--for", "machine/m")


def test_events_can_be_sorted_by_a_time_that_none_of_them_has(kubectl: Kubectl) -> None:
    modern = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "m.2"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "mcm",
        "reportingInstance": "mcm-0",
        "action": "Create",
        "reason": "Created",
        "regarding": {"kind": "Machine", "name": "m", "namespace": kubectl.namespace},
        "note": "a machine was made",
        "type": "Normal",
    }
    for number in range(3):
        named = {
            **modern,
            "metadata": {"name": f"m.{number}"},
            "note": f"machine {number} was made",
        }
        kubectl("create", "-f", "-", stdin=named)
    table = kubectl("get", "events", "--sort-by=.lastTimestamp")
    assert all(f"machine {number} was made" in table for number in range(3))


@pytest.mark.parametrize("field", ["lastTimestamp", "firstTimestamp", "eventTime"])
def test_an_event_that_says_nothing_can_be_sorted_too(kubectl: Kubectl, field: str) -> None:
    silent = event("Machine", "m", "u", kubectl.namespace)
    for left_out in ("firstTimestamp", "lastTimestamp", "count", "source"):
        del silent[left_out]
    kubectl("create", "-f", "-", stdin=silent)
    assert "it does not move" in kubectl("get", "events", f"--sort-by=.{field}")


def test_each_event_is_shown_once_with_its_count(kubectl: Kubectl) -> None:
    kubectl("create", "-f", "-", stdin=deployment("x"))
    uid = kubectl.json("get", "mcd", "x")["metadata"]["uid"]
    old = event("MachineDeployment", "x", uid, kubectl.namespace)
    new = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "x.2"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "series": {"count": 4, "lastObservedTime": "2026-01-01T00:01:00.000000Z"},
        "reportingController": "mcm",
        "reportingInstance": "mcm-0",
        "action": "Scale",
        "reason": "Scaled",
        "regarding": old["involvedObject"],
        "note": "made another",
        "type": "Normal",
    }
    kubectl("create", "-f", "-", stdin=[old, new])
    for command in (
        ("get", "events"),
        ("get", "events.events.k8s.io"),
        ("get", "events", "--sort-by=.lastTimestamp"),
        ("events",),
        ("describe", "mcd", "x"),
    ):
        shown = kubectl(*command)
        assert (shown.count("it does not move"), shown.count("made another")) == (1, 1), shown
    wide = kubectl("get", "events", "--sort-by=.metadata.name", "-o", "wide", "--no-headers")
    assert [line.split()[-2:] for line in wide.splitlines()] == [["1", "x.1"], ["4", "x.2"]]
    assert "x4 over" in kubectl("describe", "mcd", "x") and "x4 over" in kubectl("events")


def test_explain_reads_the_schemas_of_custom_and_built_in_kinds(kubectl: Kubectl) -> None:
    explained = kubectl("explain", "mcd.spec.strategy")
    assert "KIND:       MachineDeployment" in explained
    assert re.search(r"rollingUpdate\s+<Object>", explained)
    assert "containerPort" in kubectl("explain", "pods.spec.containers.ports")
    assert "FIELDS:" in kubectl("explain", "machineclass", "--recursive")
    assert 'field "colour" does not exist' in kubectl.fails("explain", "mcd.spec.colour")
    for name in ("nodes", "leases", "deployments.apps", "crd", "pdb", "volumeattachments"):
        assert "DESCRIPTION:" in kubectl("explain", name)


def test_raw_paths_and_permissions_can_be_asked_for(kubectl: Kubectl) -> None:
    assert "apiserver_request" in kubectl("get", "--raw", "/metrics")
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert "check passed" in kubectl("get", "--raw", "/livez?verbose")
    assert "NotFound" in kubectl.fails("get", "--raw", "/nowhere")
    assert kubectl("auth", "can-i", "create", "machines") == "yes\n"
    assert "Username" in kubectl("auth", "whoami")
    assert "*.*" in kubectl("auth", "can-i", "--list")
    assert "is running at" in kubectl("cluster-info")
