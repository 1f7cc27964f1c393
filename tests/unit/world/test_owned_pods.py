from __future__ import annotations

import msgspec
import pytest

from mcm.api.meta import JSONObject
from mcm.sandbox.world.kinds import Pod
from mcm.sandbox.world.owned_pods import least_useful, template_hash
from tests.unit.world.manifests import template


@pytest.mark.parametrize(
    "returned",
    [
        {"metadata": {"labels": {"app": "web"}, "creationTimestamp": None}},
        {"metadata": {"labels": {"app": "web"}, "annotations": {}}},
        {
            "spec": {
                "containers": [{"image": "app:1", "name": "main", "resources": {}, "args": []}],
                "nodeSelector": {},
            }
        },
    ],
)
def test_a_template_that_went_through_a_clients_types_is_the_same(returned: JSONObject) -> None:
    assert template_hash({**template(), **returned}) == template_hash(template())


def test_any_other_difference_makes_another_template() -> None:
    others = (template(image="app:2"), template(hostNetwork=False), template("other"))
    assert len({template_hash(t) for t in (template(), *others)}) == 4


def a_pod(name: str, *, node: str, phase: str, ready: bool, second: int) -> Pod:
    raw = {
        "metadata": {"name": name, "creationTimestamp": f"2026-01-01T00:00:{second:02}Z"},
        "spec": {"nodeName": node},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]},
    }
    return msgspec.convert(raw, Pod)


def test_the_least_useful_pods_are_those_without_node_then_not_running_unready_and_new() -> None:
    in_order = [
        a_pod("unbound", node="", phase="Pending", ready=False, second=1),
        a_pod("pending", node="n", phase="Pending", ready=False, second=1),
        a_pod("unready", node="n", phase="Running", ready=False, second=1),
        a_pod("newer", node="n", phase="Running", ready=True, second=5),
        a_pod("older", node="n", phase="Running", ready=True, second=1),
    ]
    assert list(least_useful(reversed(in_order), 4)) == in_order[:4]
