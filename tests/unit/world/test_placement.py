from __future__ import annotations

import msgspec
import pytest

from mcm.api.meta import JSONObject
from mcm.sandbox.world.kinds import Node, Pod
from mcm.sandbox.world.placement import Candidate, place
from tests.unit.world.manifests import bare_node, pod


def a_node(name: str = "n", *, pods: int = 110, zone: str = "", **spec: object) -> Node:
    raw = {**bare_node(name, pods=pods, zone=zone), "spec": spec}
    return msgspec.convert(raw, Node)


def a_pod(name: str = "p", **spec: object) -> Pod:
    raw = pod(name)
    return msgspec.convert({**raw, "spec": spec}, Pod)


def asking(**requests: str) -> Pod:
    return a_pod(containers=[{"name": "main", "resources": {"requests": requests}}])


def placed(wanting: Pod, *candidates: Candidate) -> str:
    """The Node's name, or what the pod is told."""
    found = place(wanting, candidates)
    return found.node_name or found.message


def taint(key: str, effect: str, value: str = "") -> JSONObject:
    return {"key": key, "effect": effect, "value": value}


UNREADY = msgspec.convert({"metadata": {"name": "n"}}, Node)
GONE_SOON = msgspec.convert(
    {"metadata": {"name": "n", "deletionTimestamp": "2026-01-01T00:00:00Z"}}, Node
)


def test_the_node_with_the_fewest_pods_is_chosen_and_the_first_by_name_among_equals() -> None:
    x, y = a_pod("x"), a_pod("y")
    a, b, c = a_node("a"), a_node("b"), a_node("c")
    assert placed(a_pod(), Candidate(c), Candidate(b), Candidate(a)) == "a"
    assert placed(a_pod(), Candidate(a, [x, y]), Candidate(b, [x])) == "b"


@pytest.mark.parametrize(
    ("node", "why"),
    [
        (a_node(unschedulable=True), "node(s) were unschedulable"),
        (
            a_node(taints=[taint("gpu", "NoSchedule", "yes")]),
            "node(s) had untolerated taint {gpu: yes}",
        ),
        (a_node(taints=[taint("gpu", "NoExecute")]), "node(s) had untolerated taint {gpu: }"),
        (a_node(pods=0), "Too many pods"),
        (UNREADY, "node(s) were not ready"),
        (GONE_SOON, "node(s) were being deleted"),
    ],
)
def test_a_node_that_does_not_take_a_pod_is_passed_over_for_a_reason(node: Node, why: str) -> None:
    assert placed(a_pod(), Candidate(node)) == f"0/1 nodes are available: 1 {why}."
    assert placed(a_pod(), Candidate(node), Candidate(a_node("other"))) == "other"


def test_a_preference_against_scheduling_bars_nobody() -> None:
    assert placed(a_pod(), Candidate(a_node(taints=[taint("x", "PreferNoSchedule")]))) == "n"


def test_a_selector_must_be_met() -> None:
    wanting = a_pod(nodeSelector={"zone": "2"})
    nodes = (Candidate(a_node("a", zone="1")), Candidate(a_node("b", zone="2")))
    assert placed(wanting, *nodes) == "b"
    assert "affinity/selector" in placed(wanting, nodes[0])


def test_reasons_are_counted_over_all_nodes() -> None:
    candidates = [
        Candidate(a_node("a", unschedulable=True)),
        Candidate(a_node("b", unschedulable=True)),
        Candidate(a_node("c", pods=0)),
    ]
    assert placed(a_pod(), *candidates) == (
        "0/3 nodes are available: 1 Too many pods, 2 node(s) were unschedulable."
    )
    assert placed(a_pod()) == "0/0 nodes are available: no nodes available."


def test_requests_of_all_pods_must_fit_what_the_node_offers() -> None:
    node = a_node()  # 4 CPUs, 8Gi
    assert placed(asking(cpu="4"), Candidate(node)) == "n"
    assert placed(asking(cpu="1500m"), Candidate(node, [asking(cpu="2500m")])) == "n"
    assert "Insufficient cpu" in placed(asking(cpu="1501m"), Candidate(node, [asking(cpu="2500m")]))
    assert "Insufficient memory" in placed(asking(memory="9Gi"), Candidate(node))
    assert "Insufficient gpu" in placed(asking(gpu="1"), Candidate(node))
    assert placed(asking(cpu="a lot"), Candidate(node)) == "n"


def test_a_node_takes_as_many_pods_as_it_says() -> None:
    node = a_node(pods=2)
    assert placed(a_pod(), Candidate(node, [a_pod("x")])) == "n"
    assert "Too many pods" in placed(a_pod(), Candidate(node, [a_pod("x"), a_pod("y")]))
