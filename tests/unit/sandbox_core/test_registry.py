from __future__ import annotations

import pytest

from mcm.sandbox.apiserver.kinds.builtin import BUILTIN_RESOURCES
from mcm.sandbox.apiserver.registry import Registry, ResourceInfo, version_priority


def info(version: str = "v1", *, singular: str = "") -> ResourceInfo:
    return ResourceInfo("toys.example", version, "widgets", "Widget", singular=singular)


def test_names_are_derived_where_they_are_not_given() -> None:
    found = info()
    assert (found.singular, found.list_kind) == ("widget", "WidgetList")
    assert found.api_version == "toys.example/v1"
    assert (found.qualified, found.storage) == ("widgets.toys.example", "widgets.toys.example")
    core = ResourceInfo("", "v1", "pods", "Pod")
    assert (core.api_version, core.qualified, core.storage) == ("v1", "pods", "pods")


def test_paths_are_encoded() -> None:
    assert info().path("a b", "c/d", "status") == (
        "/apis/toys.example/v1/namespaces/a%20b/widgets/c%2Fd/status"
    )
    node = ResourceInfo("", "v1", "nodes", "Node", namespaced=False)
    assert node.path("ignored", "n") == "/api/v1/nodes/n"


def test_a_registry_finds_by_plural_and_by_kind() -> None:
    registry = Registry([info()])
    assert registry.find("toys.example", "v1", "widgets") == info()
    assert registry.by_kind("toys.example", "v1", "Widget") == info()
    assert registry.find("toys.example", "v2", "widgets") is None
    assert registry.by_kind("", "v1", "Widget") is None
    assert list(registry) == [info()] and len(registry) == 1


def test_each_change_moves_the_version() -> None:
    registry = Registry()
    seen = [registry.version]
    registry.add(info())
    seen.append(registry.version)
    registry.add(info(singular="wid"))
    seen.append(registry.version)
    registry.remove("toys.example", "widgets")
    seen.append(registry.version)
    assert seen == sorted(set(seen))
    registry.remove("toys.example", "widgets")
    assert registry.version == seen[-1]
    assert registry.by_kind("toys.example", "v1", "Widget") is None


def test_versions_are_ordered_as_clients_expect() -> None:
    versions = ["v1", "v2beta1", "v10", "v1alpha1", "v2", "v1beta2", "foo", "v11alpha2"]
    registry = Registry([info(v) for v in versions])
    assert registry.versions("toys.example") == (
        "v10",
        "v2",
        "v1",
        "v2beta1",
        "v1beta2",
        "v11alpha2",
        "v1alpha1",
        "foo",
    )
    assert version_priority("v1") > version_priority("v9beta9")
    preferred = registry.of_group_kind("toys.example", "Widget")
    assert preferred is not None and preferred.version == "v10"
    assert registry.of_group_kind("toys.example", "Gadget") is None


def test_groups_and_resources_are_sorted() -> None:
    registry = Registry(BUILTIN_RESOURCES)
    assert registry.groups()[0] == ""
    assert list(registry.groups()) == sorted(registry.groups())
    plurals = [i.plural for i in registry.resources("", "v1")]
    assert plurals == sorted(plurals) and "pods" in plurals


def test_a_storage_key_leads_back_to_the_version_it_is_kept_in() -> None:
    registry = Registry(BUILTIN_RESOURCES)
    events = registry.of_storage("events")
    assert events is not None and events.group == ""
    assert registry.of_storage("nothing") is None


def test_a_manifest_knows_where_it_is_created() -> None:
    registry = Registry(BUILTIN_RESOURCES)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert registry.collection_path(pod) == "/api/v1/namespaces/default/pods"
    elsewhere = {**pod, "metadata": {"namespace": "n"}}
    assert registry.collection_path(elsewhere) == "/api/v1/namespaces/n/pods"
    assert registry.collection_path({"apiVersion": "v1", "kind": "Node"}) == "/api/v1/nodes"
    with pytest.raises(LookupError):
        registry.collection_path({"apiVersion": "v1", "kind": "Poem"})


def test_what_is_built_in_is_what_the_project_needs() -> None:
    served = {(i.group, i.plural) for i in BUILTIN_RESOURCES}
    assert {
        ("", "namespaces"),
        ("", "nodes"),
        ("", "pods"),
        ("", "secrets"),
        ("", "configmaps"),
        ("", "events"),
        ("events.k8s.io", "events"),
        ("", "serviceaccounts"),
        ("", "persistentvolumeclaims"),
        ("", "persistentvolumes"),
        ("", "services"),
        ("coordination.k8s.io", "leases"),
        ("policy", "poddisruptionbudgets"),
        ("storage.k8s.io", "volumeattachments"),
        ("storage.k8s.io", "storageclasses"),
        ("storage.k8s.io", "csinodes"),
        ("apps", "replicasets"),
        ("apps", "deployments"),
        ("apps", "statefulsets"),
        ("apps", "daemonsets"),
        ("scheduling.k8s.io", "priorityclasses"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authentication.k8s.io", "selfsubjectreviews"),
    } <= served
    assert all(i.builtin for i in BUILTIN_RESOURCES)
