from __future__ import annotations

from typing import Any

import orjson
import pytest

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.errors import StatusError
from mcm.sandbox.apiserver.kinds.builtin import BUILTIN_RESOURCES
from mcm.sandbox.apiserver.openapi import openapi_response
from mcm.sandbox.apiserver.registry import Registry, ResourceInfo


def widget(**properties: object) -> ResourceInfo:
    schema: JSONObject = {
        "type": "object",
        "description": "A widget.",
        "properties": {"spec": {"type": "object", "properties": properties}},
    }
    return ResourceInfo(
        "example.com",
        "v1",
        "widgets",
        "Widget",
        subresources=frozenset({"status"}),
        schema=schema,
    )


@pytest.fixture
def registry() -> Registry:
    return Registry([*BUILTIN_RESOURCES, widget(size={"type": "integer"})])


def document(registry: Registry, path: str) -> Any:
    response = openapi_response(registry, path, "application/json", {})
    assert response is not None and response.status == 200
    return orjson.loads(response.body)


def index(registry: Registry) -> dict[str, str]:
    paths = document(registry, "/openapi/v3")["paths"]
    return {key: entry["serverRelativeURL"] for key, entry in paths.items()}


def test_the_index_names_a_document_for_each_group_and_version(registry: Registry) -> None:
    found = index(registry)
    assert {"api/v1", "apis/apps/v1", "apis/example.com/v1"} <= found.keys()
    for key, url in found.items():
        path, _, digest = url.partition("?hash=")
        assert path == f"/openapi/v3/{key}" and len(digest) == 32
        assert document(registry, path)["openapi"] == "3.0.0"


def test_a_documents_address_changes_with_its_kinds_alone(registry: Registry) -> None:
    before = index(registry)
    registry.add(widget(size={"type": "string"}))
    after = index(registry)
    assert {key for key in before if before[key] != after[key]} == {"apis/example.com/v1"}
    registry.remove("example.com", "widgets")
    assert "apis/example.com/v1" not in index(registry)


def test_a_document_fetched_by_its_hash_may_be_kept(registry: Registry) -> None:
    path = "/openapi/v3/api/v1"
    hashed = openapi_response(registry, path, "", {"hash": "X"})
    plain = openapi_response(registry, path, "", {})
    assert hashed is not None and "immutable" in hashed.headers["cache-control"]
    assert plain is not None and "cache-control" not in plain.headers


def test_a_kinds_schema_has_what_all_objects_have(registry: Registry) -> None:
    schemas = document(registry, "/openapi/v3/apis/example.com/v1")["components"]["schemas"]
    schema = schemas["com.example.v1.Widget"]
    assert schema["description"] == "A widget."
    assert schema["properties"]["spec"]["properties"] == {"size": {"type": "integer"}}
    assert schema["x-kubernetes-group-version-kind"] == [
        {"group": "example.com", "version": "v1", "kind": "Widget"}
    ]
    reference = schema["properties"]["metadata"]["allOf"][0]["$ref"]
    assert "labels" in schemas[reference.removeprefix("#/components/schemas/")]["properties"]


def test_writes_declare_field_validation_for_their_kind(registry: Registry) -> None:
    paths = document(registry, "/openapi/v3/apis/example.com/v1")["paths"]
    collection = "/apis/example.com/v1/namespaces/{namespace}/widgets"
    item = f"{collection}/{{name}}"
    for path, method in (
        (collection, "post"),
        (item, "put"),
        (item, "patch"),
        (f"{item}/status", "patch"),
    ):
        operation = paths[path][method]
        assert "fieldValidation" in {p["name"] for p in operation["parameters"]}
        assert operation["x-kubernetes-group-version-kind"] == {
            "group": "example.com",
            "version": "v1",
            "kind": "Widget",
        }
    assert set(paths[collection]) == {"get", "post", "delete", "parameters"}
    assert set(paths["/apis/example.com/v1/widgets"]) == {"get"}
    assert [p["name"] for p in paths[item]["parameters"]] == ["namespace", "name"]


def test_every_reference_leads_somewhere(registry: Registry) -> None:
    def references(value: object) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [r for member in value.values() for r in references(member)]
        return [r for item in value for r in references(item)] if isinstance(value, list) else []

    for url in index(registry).values():
        found = document(registry, url.partition("?")[0])
        for reference in references(found):
            assert reference.removeprefix("#/components/schemas/") in found["components"]["schemas"]
    version_2 = document(registry, "/openapi/v2")
    for reference in references(version_2):
        assert reference.removeprefix("#/definitions/") in version_2["definitions"]


def test_operations_have_names_of_their_own(registry: Registry) -> None:
    paths = document(registry, "/openapi/v3/api/v1")["paths"]
    names = [
        operation["operationId"]
        for item in paths.values()
        for method, operation in item.items()
        if method != "parameters"
    ]
    assert len(names) == len(set(names))


def test_what_does_not_exist_has_no_answer(registry: Registry) -> None:
    for path in ("/openapi/v3/apis/nowhere/v1", "/openapi/v4", "/openapi/v3/api"):
        assert openapi_response(registry, path, "", {}) is None


@pytest.mark.parametrize("sign", [".", "@"])
def test_version_2_in_protobuf_is_a_bare_document(registry: Registry, sign: str) -> None:
    accept = f"application/com.github.proto-openapi.spec.v2{sign}v1.0+protobuf"
    response = openapi_response(registry, "/openapi/v2", accept, {})
    assert response is not None and response.headers["content-type"].endswith("+protobuf")
    assert "@" not in response.headers["content-type"]
    assert response.body == b"\n\x032.0\x12\x15\n\nKubernetes\x12\x07sandboxB\x00"


@pytest.mark.parametrize("path", ["/openapi/v3", "/openapi/v3/api/v1", "/openapi/v2"])
def test_a_client_that_takes_nothing_we_have_is_refused(registry: Registry, path: str) -> None:
    with pytest.raises(StatusError) as caught:
        openapi_response(registry, path, "application/vnd.kubernetes.protobuf", {})
    assert caught.value.code == 406
