from __future__ import annotations

import re
import tracemalloc
from operator import attrgetter
from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from mcm import drain
from mcm.api import interning
from mcm.api import names as api_names
from mcm.api.codec import decode_object
from mcm.api.core import PODS, NodeCondition, Pod, Volume
from mcm.api.meta import ObjectMeta
from mcm.providers.simulated.pods import RUNNABLE_PODS


def _condition(number: int, message: str = "") -> NodeCondition:
    """With texts that are no constants of the interpreter."""
    message = message or f"message {number}"
    return NodeCondition(type="Ready", status="True", reason=f"reason-{number}", message=message)


def test_equal_texts_become_the_same_one() -> None:
    first, second = _condition(1), _condition(1)
    assert first.reason is not second.reason
    interning.share_condition_texts((first, second))
    assert first == second == _condition(1)
    assert first.reason is second.reason and first.message is second.message


def test_long_messages_are_left_alone() -> None:
    first, second = _condition(2, "x" * 200 + str(2)), _condition(2, "x" * 200 + str(2))
    interning.share_condition_texts((first, second))
    assert first == second and first.message is not second.message


def test_the_memory_of_what_was_seen_is_bounded() -> None:
    pool: interning.Pool[str] = interning.Pool(100)
    for number in range(1000):
        text = f"text {number}"
        assert pool.same(text, text) is text
        assert len(pool) <= 100
    assert pool.same("text 999", "another".replace("another", "text 999")) == "text 999"


_POD: dict[str, Any] = {
    "metadata": {
        "name": "web-1",
        "namespace": "shop",
        "generateName": "web-",
        "labels": {"app": "web"},
        "annotations": {"cni.example.com/ip": "10.0.0.1", "machine.sapcloud.io/drain-wave": "2"},
        "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u"}
        ],
    },
    "spec": {
        "nodeName": "node-1",
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "volumes": [
            {"name": "kube-api-access-x7k2p", "projected": {"sources": []}},
            {"name": "config", "configMap": {"name": "c"}},
            {"name": "scratch", "emptyDir": {"medium": "Memory"}},
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        ],
    },
    "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
}


def _decoded(**changes: object) -> Pod:
    document = {**_POD, "spec": {**_POD["spec"], **changes}}
    return decode_object(PODS, orjson.dumps(document))


def test_what_pods_of_one_application_say_alike_is_held_once() -> None:
    one, other = _decoded(), _decoded()
    assert one == other
    for path in (
        "metadata.namespace",
        "metadata.generate_name",
        "metadata.labels",
        "metadata.owner_references",
        "spec.node_name",
        "spec.tolerations",
        "spec.volumes",
        "status.phase",
        "status.conditions",
    ):
        part = attrgetter(path)
        assert part(one) is part(other), path
    assert one.metadata.name is not other.metadata.name


def test_only_what_drains_read_of_a_pod_is_kept() -> None:
    pod = _decoded()
    assert pod.metadata.annotations == {"machine.sapcloud.io/drain-wave": "2"}
    assert [volume.name for volume in pod.spec.volumes] == ["scratch", "data"]
    assert pod.metadata.labels == {"app": "web"}


def test_a_type_of_its_own_forgets_nothing() -> None:
    pod = decode_object(RUNNABLE_PODS, orjson.dumps(_POD))
    assert pod.metadata.annotations == _POD["metadata"]["annotations"]
    assert len(pod.spec.volumes) == 4


def test_pods_with_ephemeral_volumes_keep_their_own() -> None:
    template: dict[str, object] = {"volumeClaimTemplate": {"spec": {"accessModes": ["a"]}}}
    volumes = [{"name": "tmp", "ephemeral": template}, {"name": "x", "hostPath": {"path": "/x"}}]
    pod = _decoded(volumes=volumes)
    assert pod.spec.volumes == (Volume(name="tmp", ephemeral=template),)


def test_parts_that_are_alike_but_for_one_value_stay_apart() -> None:
    one, other = _decoded(), _decoded(tolerations=[{"key": "k", "operator": "Equal"}])
    assert one.spec.tolerations != other.spec.tolerations


@given(st.lists(st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=20))
def test_labels_are_never_mixed_up(labels: list[dict[str, str]]) -> None:
    pods = [Pod(metadata=ObjectMeta(name="p", labels=dict(found))) for found in labels]
    for pod in pods:
        interning.share_parts_of_pod(pod)
    assert [pod.metadata.labels for pod in pods] == labels
    kept = {id(pod.metadata.labels) for pod in pods}
    assert len(kept) <= len({tuple(found.items()) for found in labels})


def test_every_annotation_that_a_drain_reads_of_a_pod_is_kept() -> None:
    """Whoever reads another must add it, or would never see it."""
    package = Path(drain.__file__).parent
    names = {
        name
        for path in package.rglob("*.py")
        for name in re.findall(r"\bANNOTATION_[A-Z_]+", path.read_text())
    }
    names.remove("ANNOTATION_KUBECTL_RESTARTED_AT")  # of the templates of Deployments
    assert {getattr(api_names, name) for name in names} <= interning.POD_ANNOTATIONS


def test_a_pod_costs_less_than_a_kilobyte() -> None:
    bodies = [
        orjson.dumps({**_POD, "metadata": {**_POD["metadata"], "name": f"web-{number}"}})
        for number in range(1000)
    ]
    pods = [decode_object(PODS, body) for body in bodies[:10]]
    tracemalloc.start()
    try:
        pods += [decode_object(PODS, body) for body in bodies]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(pods) == 1010
    assert held / len(bodies) < 700
