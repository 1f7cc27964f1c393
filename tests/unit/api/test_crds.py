from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
import yaml
from msgspec import inspect

from mcm.api.crds import crd_manifest, crd_manifests, root_schema, to_yaml
from mcm.api.crds.descriptions import DESCRIPTIONS
from mcm.api.crds.extras import EXTRAS
from mcm.api.machine import MACHINE_CLASSES, MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject, KubeObject, Resource

KINDS = ("Machine", "MachineClass", "MachineDeployment", "MachineSet")
RESOURCES: tuple[Resource[KubeObject], ...] = (
    MACHINES,
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
)
AGE = ("Age", "date", ".metadata.creationTimestamp", 0)
FROZEN = ("Frozen", "string", ".metadata.labels.freeze", 1)


def _at(obj: object, *path: str | int) -> object:
    for step in path:
        if isinstance(step, int):
            assert isinstance(obj, list)
            obj = obj[step]
        else:
            assert isinstance(obj, dict)
            obj = obj[step]
    return obj


def _version(kind: str) -> JSONObject:
    versions = _at(crd_manifest(kind), "spec", "versions")
    assert isinstance(versions, list) and len(versions) == 1
    version = versions[0]
    assert isinstance(version, dict)
    return version


def _schema(kind: str) -> JSONObject:
    schema = _at(_version(kind), "schema", "openAPIV3Schema")
    assert isinstance(schema, dict)
    return schema


def _nodes(schema: JSONObject, path: str = "") -> Iterator[tuple[str, JSONObject]]:
    """All parts of a schema by their path; ``[]`` stands for items, ``{}`` for map values."""
    yield path, schema
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    children = {f"{path}.{name}" if path else name: part for name, part in properties.items()}
    children |= {f"{path}[]": schema["items"]} if "items" in schema else {}
    if "additionalProperties" in schema:
        children[f"{path}{{}}"] = schema["additionalProperties"]
    for where, child in children.items():
        assert isinstance(child, dict)
        yield from _nodes(child, where)


def _paths_with(kind: str, key: str, value: object = True) -> set[str]:
    return {path for path, node in _nodes(_schema(kind)) if node.get(key) == value}


# Manifests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "plural", "short"),
    [
        ("Machine", "machines", "mc"),
        ("MachineClass", "machineclasses", "mcc"),
        ("MachineSet", "machinesets", "mcs"),
        ("MachineDeployment", "machinedeployments", "mcd"),
    ],
)
def test_a_kind_has_its_names_and_one_version(kind: str, plural: str, short: str) -> None:
    manifest = crd_manifest(kind)
    assert manifest["apiVersion"] == "apiextensions.k8s.io/v1"
    assert manifest["kind"] == "CustomResourceDefinition"
    assert manifest["metadata"] == {"name": f"{plural}.machine.sapcloud.io"}
    spec = manifest["spec"]
    assert isinstance(spec, dict)
    assert (spec["group"], spec["scope"]) == ("machine.sapcloud.io", "Namespaced")
    assert spec["names"] == {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        "shortNames": [short],
    }
    version = _version(kind)
    assert (version["name"], version["served"], version["storage"]) == ("v1alpha1", True, True)


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("MachineClass", []),
        (
            "Machine",
            [
                ("Status", "string", ".status.currentStatus.phase", 0),
                AGE,
                ("Node", "string", ".metadata.labels.node", 0),
                ("ProviderID", "string", ".spec.providerID", 1),
            ],
        ),
        (
            "MachineSet",
            [
                ("Desired", "integer", ".spec.replicas", 0),
                ("Current", "integer", ".status.replicas", 0),
                ("Ready", "integer", ".status.readyReplicas", 0),
                AGE,
                FROZEN,
            ],
        ),
        (
            "MachineDeployment",
            [
                ("Ready", "integer", ".status.readyReplicas", 0),
                ("Desired", "integer", ".spec.replicas", 0),
                ("Up-to-date", "integer", ".status.updatedReplicas", 0),
                ("Available", "integer", ".status.availableReplicas", 0),
                AGE,
                FROZEN,
            ],
        ),
    ],
)
def test_the_columns_of_kubectl_get(kind: str, columns: list[tuple[str, str, str, int]]) -> None:
    found = _version(kind).get("additionalPrinterColumns", [])
    assert isinstance(found, list)
    assert [(c["name"], c["type"], c["jsonPath"], c.get("priority", 0)) for c in found] == columns
    assert all(c["description"] for c in found)


@pytest.mark.parametrize("kind", ["Machine", "MachineSet", "MachineDeployment"])
def test_a_column_shows_a_field_of_the_schema(kind: str) -> None:
    paths = {path for path, _ in _nodes(_schema(kind))}
    columns = _version(kind)["additionalPrinterColumns"]
    assert isinstance(columns, list)
    shown = {c["jsonPath"].removeprefix(".") for c in columns}
    assert {p for p in shown if not p.startswith("metadata.")} <= paths


def test_the_subresources() -> None:
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    assert _version("Machine")["subresources"] == {"status": {}}
    assert "subresources" not in _version("MachineClass")
    assert _version("MachineSet")["subresources"] == {"scale": scale, "status": {}}
    assert _version("MachineDeployment")["subresources"] == {"scale": scale, "status": {}}


def test_an_unknown_kind_has_no_manifest() -> None:
    with pytest.raises(KeyError):
        crd_manifest("MachinePool")


def test_the_yaml_holds_the_manifests_in_order_and_in_full() -> None:
    text = to_yaml()
    assert list(yaml.safe_load_all(text)) == crd_manifests()
    assert text.startswith("# ")
    assert text.count("\n---\n") == len(KINDS)
    assert "&id" not in text and "*id" not in text
    assert to_yaml() == text
    names = [_at(m, "metadata", "name") for m in crd_manifests()]
    assert names == sorted(map(str, names))


def test_a_manifest_is_the_callers_to_change() -> None:
    first = crd_manifests()
    _scribble(first)
    assert list(yaml.safe_load_all(to_yaml())) == crd_manifests()
    assert crd_manifests() != first


def _scribble(value: object) -> None:
    if isinstance(value, dict):
        for item in value.values():
            _scribble(item)
        value["scribbled"] = True
    elif isinstance(value, list):
        for item in value:
            _scribble(item)


# Schemas ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_structural(kind: str) -> None:
    for path, node in _nodes(_schema(kind)):
        if node.get("x-kubernetes-int-or-string"):
            assert node["anyOf"] == [{"type": "integer"}, {"type": "string"}], path
            assert "type" not in node, path
            continue
        assert node["type"] in ("object", "array", "string", "integer", "boolean"), path
        assert ("items" in node) == (node["type"] == "array"), path
        assert not ("properties" in node and "additionalProperties" in node), path
        if "x-kubernetes-preserve-unknown-fields" in node or "required" in node:
            assert node["type"] == "object", path
        properties, required = node.get("properties", {}), node.get("required", [])
        assert isinstance(properties, dict) and isinstance(required, list)
        assert set(required) <= properties.keys(), path
        assert list(properties) == sorted(properties) and required == sorted(required), path


@pytest.mark.parametrize("kind", KINDS)
def test_metadata_is_left_to_the_api_server(kind: str) -> None:
    assert _at(_schema(kind), "properties", "metadata") == {"type": "object"}


NODE_METADATA = "nodeTemplate.metadata"


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("Machine", {f"spec.{NODE_METADATA}"}),
        ("MachineClass", {"nodeTemplate", "providerSpec"}),
        ("MachineSet", {"spec.template.metadata", f"spec.template.spec.{NODE_METADATA}"}),
        ("MachineDeployment", {"spec.template.metadata", f"spec.template.spec.{NODE_METADATA}"}),
    ],
)
def test_unknown_fields_are_kept_just_here(kind: str, kept: set[str]) -> None:
    assert _paths_with(kind, "x-kubernetes-preserve-unknown-fields") == kept


@pytest.mark.parametrize(
    ("kind", "nullable"),
    [
        ("Machine", set()),
        ("MachineClass", set()),
        ("MachineSet", {"status.failedMachines"}),
        (
            "MachineDeployment",
            {
                "spec.progressDeadlineSeconds",
                "spec.revisionHistoryLimit",
                "spec.rollbackTo",
                "status.collisionCount",
                "status.failedMachines",
            },
        ),
    ],
)
def test_nulls_are_admitted_for_all_times_and_where_go_writes_them(
    kind: str, nullable: set[str]
) -> None:
    times = _paths_with(kind, "format", "date-time")
    assert _paths_with(kind, "nullable") == nullable | times
    if kind == "Machine":
        assert "status.currentStatus.preserveExpiryTime" in times


@pytest.mark.parametrize(
    ("kind", "paths"),
    [
        ("Machine", set()),
        ("MachineClass", set()),
        ("MachineSet", {"status.observedGeneration"}),
        ("MachineDeployment", {"status.observedGeneration", "spec.rollbackTo.revision"}),
    ],
)
def test_generations_and_revisions_are_longer_than_other_numbers(
    kind: str, paths: set[str]
) -> None:
    assert _paths_with(kind, "format", "int64") == paths
    integers = _paths_with(kind, "type", "integer")
    assert integers == paths | _paths_with(kind, "format", "int32")


@pytest.mark.parametrize(
    ("kind", "paths"),
    [
        ("Machine", set()),
        ("MachineClass", {"nodeTemplate.capacity{}", "nodeTemplate.virtualCapacity{}"}),
        ("MachineSet", set()),
        (
            "MachineDeployment",
            {
                f"spec.strategy.{block}.{name}"
                for block in ("rollingUpdate", "inPlaceUpdate")
                for name in ("maxSurge", "maxUnavailable")
            },
        ),
    ],
)
def test_numbers_that_may_be_texts(kind: str, paths: set[str]) -> None:
    assert _paths_with(kind, "x-kubernetes-int-or-string") == paths
    patterned = {path for path, node in _nodes(_schema(kind)) if "pattern" in node}
    assert patterned == {p for p in paths if p.endswith("{}")}


_CONFIG_MAP = ["kubeletConfigKey", "name", "namespace"]
_NODE = "nodeTemplate.spec"


@pytest.mark.parametrize(
    ("kind", "required"),
    [
        (
            "Machine",
            {
                f"spec.{_NODE}.taints[]": ["effect", "key"],
                f"spec.{_NODE}.configSource.configMap": _CONFIG_MAP,
                "status.addresses[]": ["address", "type"],
                "status.conditions[]": ["status", "type"],
            },
        ),
        (
            "MachineClass",
            {
                "": ["providerSpec"],
                "nodeTemplate": ["capacity", "instanceType", "region", "zone"],
            },
        ),
        (
            "MachineSet",
            {
                "spec.selector.matchExpressions[]": ["key", "operator"],
                f"spec.template.spec.{_NODE}.taints[]": ["effect", "key"],
                f"spec.template.spec.{_NODE}.configSource.configMap": _CONFIG_MAP,
                "status.machineSetCondition[]": ["status", "type"],
            },
        ),
        (
            "MachineDeployment",
            {
                "spec": ["template"],
                "spec.selector.matchExpressions[]": ["key", "operator"],
                f"spec.template.spec.{_NODE}.taints[]": ["effect", "key"],
                f"spec.template.spec.{_NODE}.configSource.configMap": _CONFIG_MAP,
                "status.conditions[]": ["status", "type"],
            },
        ),
    ],
)
def test_what_an_object_must_have(kind: str, required: dict[str, list[str]]) -> None:
    found = {path: node["required"] for path, node in _nodes(_schema(kind)) if "required" in node}
    assert found == required


@pytest.mark.parametrize("kind", KINDS)
def test_no_value_is_restricted_to_a_list(kind: str) -> None:
    assert all("enum" not in node for _, node in _nodes(_schema(kind)))


@pytest.mark.parametrize(
    ("kind", "carried"),
    [
        ("Machine", {"spec.nodeTemplate.spec.podCIDR", "status.conditions[].lastHeartbeatTime"}),
        (
            "MachineSet",
            {
                "spec.template.spec.nodeTemplate.spec.podCIDRs",
                "spec.template.spec.nodeTemplate.spec.unschedulable",
                "spec.template.spec.drainTimeout",
            },
        ),
        (
            "MachineDeployment",
            {
                "spec.template.spec.class.apiGroup",
                "spec.template.spec.nodeTemplate.spec.externalID",
                "spec.template.spec.nodeTemplate.spec.providerID",
            },
        ),
    ],
)
def test_fields_that_are_only_carried_are_in_the_schema(kind: str, carried: set[str]) -> None:
    assert carried <= {path for path, _ in _nodes(_schema(kind))}


# Tables beside the types --------------------------------------------------------------------------


def _wire_names(kind: type) -> set[str]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name for field in info.fields}


@pytest.mark.parametrize("kind", EXTRAS, ids=lambda kind: kind.__name__)
def test_extras_speak_of_what_the_type_has_and_carry_what_it_has_not(kind: type) -> None:
    extras, declared = EXTRAS[kind], _wire_names(kind)
    assert not declared & extras.fields.keys()
    spoken_of = (
        set(extras.required)
        | extras.nullable
        | extras.int64
        | extras.opaque
        | extras.open
        | extras.described_by.keys()
        | extras.atomic
    )
    assert spoken_of <= declared


@pytest.mark.parametrize("kind", DESCRIPTIONS, ids=lambda kind: kind.__name__)
def test_descriptions_speak_of_fields_there_are(kind: type) -> None:
    extras = EXTRAS.get(kind)
    carried = set(extras.fields) if extras else set()
    assert DESCRIPTIONS[kind].keys() <= _wire_names(kind) | carried | {""}


@pytest.mark.parametrize("kind", KINDS)
def test_kubectl_explain_has_something_to_say_on_every_field(kind: str) -> None:
    silent = {
        path
        for path, node in _nodes(_schema(kind))
        if "description" not in node and not path.endswith(("{}", "values[]", "podCIDRs[]"))
    }
    assert {p for p in silent if "configMap" not in p} == {"metadata"}


def test_a_type_without_a_schema_is_a_mistake_of_ours() -> None:
    class Strange(msgspec.Struct):
        odd: set[int]

    with pytest.raises(TypeError, match="no schema"):
        root_schema(Strange)
