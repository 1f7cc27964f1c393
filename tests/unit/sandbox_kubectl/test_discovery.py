from __future__ import annotations

from typing import Any

import orjson
import pytest

from mcm.sandbox.apiserver.discovery import discovery_response
from mcm.sandbox.apiserver.errors import StatusError
from mcm.sandbox.apiserver.kinds.builtin import BUILTIN_RESOURCES
from mcm.sandbox.apiserver.registry import Registry, ResourceInfo, ScalePaths

WIDGET = ResourceInfo(
    "example.com",
    "v1",
    "widgets",
    "Widget",
    short_names=("wd",),
    categories=("all",),
    subresources=frozenset({"status", "scale"}),
    scale=ScalePaths(".spec.replicas", ".status.replicas"),
)
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


@pytest.fixture
def registry() -> Registry:
    beta = ResourceInfo("example.com", "v1beta1", "widgets", "Widget")
    return Registry([*BUILTIN_RESOURCES, beta, WIDGET])


def document(registry: Registry, path: str, accept: str = "") -> Any:
    response = discovery_response(registry, path, accept)
    assert response is not None and response.status == 200
    return orjson.loads(response.body)


def named(items: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(i for i in items if i.get("name", i.get("metadata", {}).get("name")) == name)


def test_the_roots_list_versions_and_groups_the_preferred_one_first(registry: Registry) -> None:
    assert document(registry, "/api/")["versions"] == ["v1"]
    groups = document(registry, "/apis")
    assert groups["kind"] == "APIGroupList"
    widgets = named(groups["groups"], "example.com")
    assert [v["version"] for v in widgets["versions"]] == ["v1", "v1beta1"]
    assert widgets["preferredVersion"] == {"groupVersion": "example.com/v1", "version": "v1"}
    assert all(group["name"] for group in groups["groups"])
    assert document(registry, "/apis/example.com")["kind"] == "APIGroup"


def test_a_version_lists_resources_with_their_subresources(registry: Registry) -> None:
    listed = document(registry, "/apis/example.com/v1")
    assert listed["groupVersion"] == "example.com/v1"
    assert listed["resources"] == [
        {
            "name": "widgets",
            "singularName": "widget",
            "namespaced": True,
            "kind": "Widget",
            "verbs": list(WIDGET.verbs),
            "shortNames": ["wd"],
            "categories": ["all"],
        },
        {
            "name": "widgets/scale",
            "singularName": "",
            "namespaced": True,
            "kind": "Scale",
            "verbs": ["get", "patch", "update"],
            "group": "autoscaling",
            "version": "v1",
        },
        {
            "name": "widgets/status",
            "singularName": "",
            "namespaced": True,
            "kind": "Widget",
            "verbs": ["get", "patch", "update"],
        },
    ]
    eviction = named(document(registry, "/api/v1")["resources"], "pods/eviction")
    assert (eviction["group"], eviction["kind"], eviction["verbs"]) == (
        "policy",
        "Eviction",
        ["create"],
    )


@pytest.mark.parametrize("path", ["/apis/nowhere", "/apis/apps/v9", "/api/v2", "/version", "/"])
def test_what_is_not_served_has_no_answer(registry: Registry, path: str) -> None:
    assert discovery_response(registry, path, "") is None


@pytest.mark.parametrize(
    ("accept", "version"),
    [
        (f"{V2},{V2BETA1},application/json", "v2"),
        (f"{V2BETA1},application/json", "v2beta1"),
        (f"application/json;g=other;v=v2;as=APIGroupDiscoveryList,{V2}", "v2"),
        (f"application/vnd.kubernetes.protobuf, {V2}", "v2"),
    ],
)
def test_a_modern_client_gets_everything_at_once(
    registry: Registry, accept: str, version: str
) -> None:
    response = discovery_response(registry, "/apis", accept)
    assert response is not None
    assert response.headers["content-type"] == (
        f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
    )
    groups = orjson.loads(response.body)
    assert groups["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    versions = named(groups["items"], "example.com")["versions"]
    assert [v["version"] for v in versions] == ["v1", "v1beta1"]
    widget = versions[0]["resources"][0]
    assert widget["scope"] == "Namespaced"
    assert widget["responseKind"] == {"group": "example.com", "version": "v1", "kind": "Widget"}
    assert [s["subresource"] for s in widget["subresources"]] == ["scale", "status"]
    assert widget["subresources"][0]["responseKind"]["kind"] == "Scale"
    core = document(registry, "/api", accept)["items"]
    assert [item["metadata"]["name"] for item in core] == [""]
    scopes = {r["resource"]: r["scope"] for r in core[0]["versions"][0]["resources"]}
    assert (scopes["nodes"], scopes["pods"]) == ("Cluster", "Namespaced")


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", f"application/json,{V2}"])
def test_an_older_client_gets_the_old_form(registry: Registry, accept: str) -> None:
    assert document(registry, "/apis", accept)["kind"] == "APIGroupList"


def test_only_the_roots_have_the_aggregated_form(registry: Registry) -> None:
    accept = f"{V2},application/json"
    assert document(registry, "/apis/example.com/v1", accept)["kind"] == "APIResourceList"


def test_a_client_that_takes_no_json_is_refused(registry: Registry) -> None:
    with pytest.raises(StatusError) as caught:
        discovery_response(registry, "/apis", "application/vnd.kubernetes.protobuf")
    assert caught.value.code == 406
