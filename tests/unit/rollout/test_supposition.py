"""What a plan starts from: what would be applied, and what a dump holds."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from mcm.api.machine import MACHINE_DEPLOYMENTS
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_KUBECTL_LAST_APPLIED
from mcm.client.errors import ConfigurationError
from mcm.rollout.supposition import (
    Namespace,
    Supposition,
    applied,
    read_dump,
    read_manifest,
    supposed,
)
from tests.unit.deployment.objects import NOW, deployment

VERSION = MACHINE_DEPLOYMENTS.api_version


def write(tmp_path: Path, *objects: JSONObject) -> list[Path]:
    file = tmp_path / "objects.json"
    file.write_bytes(orjson.dumps({"kind": "List", "items": objects}))
    return [file]


def an_object(
    kind: str, name: str, *, uid: str = "", namespace: str = "ns", **rest: object
) -> JSONObject:
    metadata = {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})}
    return {"apiVersion": VERSION, "kind": kind, "metadata": metadata, **rest}


# ---- as applied ----------------------------------------------------------------------------------


def live(spec: JSONObject, last: JSONObject | None = None) -> JSONObject:
    annotations = (
        {ANNOTATION_KUBECTL_LAST_APPLIED: orjson.dumps({"spec": last}).decode()} if last else {}
    )
    return {"metadata": {"name": "pool", "uid": "u", "annotations": annotations}, "spec": spec}


@pytest.mark.parametrize(
    ("present", "last", "manifest", "expected"),
    [
        ({"a": 1}, None, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1, "b": 1}, {"a": 1}, {"b": 2}, {"b": 2}),
        ({"a": {"x": 1, "y": 1}}, {"a": {"x": 1}}, {"a": {"z": 1}}, {"a": {"y": 1, "z": 1}}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [3]}, {"a": [3]}),
        ({"a": 5}, {"a": 1}, {"a": 1}, {"a": 1}),
    ],
)
def test_a_manifest_counts_as_kubectl_apply_would_apply_it(
    present: JSONObject, last: JSONObject | None, manifest: JSONObject, expected: JSONObject
) -> None:
    after = applied(live(present, last), {"spec": manifest, "status": {"replicas": 9}})
    assert after["spec"] == expected
    assert "status" not in after


def test_what_was_last_applied_may_be_anything() -> None:
    present = live({"a": 1})
    present["metadata"] = {"annotations": {ANNOTATION_KUBECTL_LAST_APPLIED: "{no"}}
    assert applied(present, {"spec": {"b": 2}})["spec"] == {"a": 1, "b": 2}


def test_a_deployment_that_is_not_there_yet_is_made() -> None:
    manifest = an_object(
        "MachineDeployment",
        "pool",
        spec={"replicas": 2, "template": {"spec": {"class": {"name": "a"}}}},
    )
    seen = supposed(Namespace(None), Supposition(manifest=manifest, replicas=5), NOW)
    assert (seen.deployment.spec.replicas, list(seen.sets)) == (5, [])
    with pytest.raises(ConfigurationError, match="there is no such MachineDeployment"):
        supposed(Namespace(None), Supposition(), NOW)


def test_what_cannot_be_read_names_the_field() -> None:
    manifest = an_object("MachineDeployment", "pool", spec={"replicas": "three"})
    with pytest.raises(ConfigurationError, match=r"spec\.replicas"):
        supposed(Namespace(None), Supposition(manifest=manifest), NOW)


@pytest.mark.parametrize(
    ("classes", "missing"), [(None, ""), (("class-a",), ""), (("class-b",), "class-a")]
)
def test_a_class_that_is_not_there_is_found_out(
    classes: tuple[str, ...] | None, missing: str
) -> None:
    assert Namespace(None, classes=classes).lacks_class_of(deployment()) == missing


# ---- files ---------------------------------------------------------------------------------------


def test_a_dump_is_read_with_what_stands_beside_the_deployment(tmp_path: Path) -> None:
    objects: list[JSONObject] = [
        an_object("MachineDeployment", "pool", uid="1"),
        an_object("MachineSet", "set", uid="2"),
        an_object("Machine", "machine", uid="3"),
        an_object("Machine", "elsewhere", uid="4", namespace="other"),
        {"apiVersion": "apps/v1", "kind": "MachineSet", "metadata": {"name": "foreign"}},
    ]
    found = read_dump(write(tmp_path, *objects), "", "")
    assert [s.metadata.name for s in found.sets] == ["set"]
    assert [m.metadata.name for m in found.machines] == ["machine"]


@pytest.mark.parametrize(
    ("name", "namespace", "complaint"),
    [
        ("", "", "exactly one MachineDeployment is expected; there is: ns/a, ns/b, other/a"),
        ("a", "", "exactly one MachineDeployment 'a' is expected"),
        ("c", "ns", "exactly one MachineDeployment 'c' is expected; there is: ns/a, ns/b"),
        ("a", "nowhere", "there is: none"),
    ],
)
def test_which_deployment_is_meant_must_be_clear(
    tmp_path: Path, name: str, namespace: str, complaint: str
) -> None:
    kind = "MachineDeployment"
    objects = [an_object(kind, "a"), an_object(kind, "b"), an_object(kind, "a", namespace="other")]
    with pytest.raises(ConfigurationError, match=complaint):
        read_dump(write(tmp_path, *objects), name, namespace)
    assert read_dump(write(tmp_path, *objects), "a", "other").deployment == objects[2]


def test_objects_that_come_from_no_cluster_are_no_dump(tmp_path: Path) -> None:
    objects = (an_object("MachineDeployment", "a"), an_object("MachineSet", "set"))
    with pytest.raises(ConfigurationError, match=r"MachineSet set has no metadata\.uid"):
        read_dump(write(tmp_path, *objects), "a", "")


def test_a_dump_is_not_taken_for_what_is_to_be_applied(tmp_path: Path) -> None:
    files = write(tmp_path, an_object("MachineDeployment", "a"), an_object("Machine", "m"))
    with pytest.raises(ConfigurationError, match="--from plans from a dump"):
        read_manifest(files, "")
