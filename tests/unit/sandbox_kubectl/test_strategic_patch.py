from __future__ import annotations

import copy

import pytest

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.patches import PatchError, apply_strategic_patch


def pod(**spec: object) -> JSONObject:
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec}


def patched(document: JSONObject, patch: JSONObject, kind: str = "Pod") -> JSONObject:
    before = copy.deepcopy((document, patch))
    result = apply_strategic_patch(document, patch, kind=kind)
    assert (document, patch) == before
    return result


def patched_spec(spec: JSONObject, patch: JSONObject) -> JSONObject:
    result = patched({"apiVersion": "v1", "kind": "Pod", "spec": spec}, {"spec": patch})["spec"]
    assert isinstance(result, dict)
    return result


def test_containers_merge_by_name_and_keep_what_the_patch_does_not_say() -> None:
    document = pod(
        containers=[
            {"name": "a", "image": "a:1", "env": [{"name": "X", "value": "1"}]},
            {"name": "b", "image": "b:1"},
        ]
    )
    patch: JSONObject = {
        "spec": {
            "containers": [
                {"name": "b", "image": "b:2"},
                {"name": "a", "env": [{"name": "Y", "value": "2"}]},
            ]
        }
    }
    assert patched(document, patch) == pod(
        containers=[
            {"name": "b", "image": "b:2"},
            {
                "name": "a",
                "image": "a:1",
                "env": [{"name": "Y", "value": "2"}, {"name": "X", "value": "1"}],
            },
        ]
    )


def test_ports_merge_by_container_port_and_mounts_by_path() -> None:
    spec = {
        "containers": [
            {
                "name": "a",
                "ports": [{"containerPort": 80, "name": "http"}],
                "volumeMounts": [{"mountPath": "/data", "name": "data"}],
            }
        ]
    }
    patch = {
        "containers": [
            {
                "name": "a",
                "ports": [{"containerPort": 80, "name": "web"}],
                "volumeMounts": [{"mountPath": "/data", "readOnly": True}],
            }
        ]
    }
    assert patched_spec({**spec}, {**patch}) == {
        "containers": [
            {
                "name": "a",
                "ports": [{"containerPort": 80, "name": "web"}],
                "volumeMounts": [{"mountPath": "/data", "name": "data", "readOnly": True}],
            }
        ]
    }


def test_tolerations_and_node_taints_are_single_values() -> None:
    spec: JSONObject = {"tolerations": [{"key": "a"}, {"key": "b"}]}
    assert patched_spec(spec, {"tolerations": [{"key": "c"}]}) == {"tolerations": [{"key": "c"}]}
    node: JSONObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
    }
    taints = {"spec": {"taints": [{"key": "b", "effect": "NoExecute"}]}}
    assert patched(node, {**taints}, "Node")["spec"] == taints["spec"]


def test_conditions_and_addresses_merge_by_type() -> None:
    node: JSONObject = {
        "apiVersion": "v1",
        "kind": "Node",
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "reason": "Up"},
                {"type": "DiskPressure", "status": "False"},
            ],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
        },
    }
    patch: JSONObject = {
        "status": {
            "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "DiskPressure"}],
            "conditions": [{"type": "Ready", "status": "Unknown"}],
            "addresses": [{"type": "Hostname", "address": "n1"}],
        }
    }
    assert patched(node, patch, "Node")["status"] == {
        "conditions": [
            {"type": "Ready", "status": "Unknown", "reason": "Up"},
            {"type": "DiskPressure", "status": "False"},
        ],
        "addresses": [
            {"type": "Hostname", "address": "n1"},
            {"type": "InternalIP", "address": "10.0.0.1"},
        ],
    }


def test_finalizers_are_a_set_that_grows_and_shrinks_by_directive() -> None:
    document: JSONObject = {"kind": "Pod", "metadata": {"finalizers": ["a", "b"]}}
    grown = patched(document, {"metadata": {"finalizers": ["c", "a"]}})
    assert grown["metadata"] == {"finalizers": ["c", "a", "b"]}
    shrunk = patched(document, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}})
    assert shrunk["metadata"] == {"finalizers": ["b"]}
    replaced = patched(
        document,
        {
            "metadata": {
                "$setElementOrder/finalizers": ["z", "b"],
                "$deleteFromPrimitiveList/finalizers": ["a"],
                "finalizers": ["z"],
            }
        },
    )
    assert replaced["metadata"] == {"finalizers": ["z", "b"]}


def test_owner_references_merge_by_uid() -> None:
    document: JSONObject = {"kind": "Pod", "metadata": {"ownerReferences": [{"uid": "1"}]}}
    patch: JSONObject = {"metadata": {"ownerReferences": [{"uid": "1", "controller": True}]}}
    assert patched(document, patch)["metadata"] == {
        "ownerReferences": [{"uid": "1", "controller": True}]
    }


def test_null_removes_a_member_and_nothing_else() -> None:
    assert patched_spec({"nodeName": "n", "hostname": "h"}, {"nodeName": None, "x": None}) == {
        "hostname": "h"
    }


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ([{"$patch": "delete", "name": "a"}], ["b", "c"]),
        ([{"$patch": "replace"}, {"name": "z"}], ["z"]),
        ([{"$patch": "delete", "name": "a"}, {"name": "d"}], ["d", "b", "c"]),
        ([], ["a", "b", "c"]),
    ],
)
def test_directives_delete_or_replace_list_elements(
    patch: list[object], expected: list[str]
) -> None:
    spec: JSONObject = {"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}
    assert patched_spec(spec, {"containers": patch}) == {
        "containers": [{"name": name} for name in expected]
    }


def test_an_element_order_puts_server_only_elements_where_they_stood() -> None:
    spec: JSONObject = {"volumes": [{"name": n} for n in ("injected", "a", "other", "b")]}
    patch: JSONObject = {
        "$setElementOrder/volumes": [{"name": "b"}, {"name": "new"}, {"name": "a"}],
        "volumes": [{"name": "new"}],
    }
    assert patched_spec(spec, patch) == {
        "volumes": [{"name": n} for n in ("injected", "other", "b", "new", "a")]
    }


@pytest.mark.parametrize(
    ("directive", "expected"),
    [
        ("replace", {"hostname": "x"}),
        ("delete", {}),
        ("merge", {"nodeName": "n", "hostname": "x"}),
    ],
)
def test_an_object_can_be_replaced_deleted_or_merged_by_directive(
    directive: str, expected: JSONObject
) -> None:
    assert patched_spec({"nodeName": "n"}, {"$patch": directive, "hostname": "x"}) == expected


def test_retain_keys_drops_the_members_it_does_not_name() -> None:
    document: JSONObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}},
    }
    patch: JSONObject = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert patched(document, patch, "Deployment")["spec"] == {"strategy": {"type": "Recreate"}}


def test_a_budgets_selector_is_replaced_not_merged() -> None:
    document: JSONObject = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "spec": {"selector": {"matchLabels": {"a": "1"}}},
    }
    patch: JSONObject = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}
    result = patched(document, patch, "PodDisruptionBudget")
    assert result["spec"] == patch["spec"]


def test_directives_in_a_subtree_without_counterpart_vanish() -> None:
    patch = {
        "containers": [{"$patch": "delete", "name": "a"}, {"name": "b", "args": None}],
        "strategy": {"$retainKeys": ["x"], "x": 1, "y": None},
    }
    assert patched_spec({}, {**patch}) == {"containers": [{"name": "b"}], "strategy": {"x": 1}}


@pytest.mark.parametrize(
    "patch",
    [
        {"$patch": "frobnicate"},
        {"containers": [{"image": "x"}]},
        {"containers": [{"$patch": "delete"}]},
        {"containers": [{"$patch": "merge", "name": "a"}]},
        {"containers": ["text"]},
        {"$setElementOrder/containers": "a"},
        {"$retainKeys": ["a"], "b": 1},
    ],
)
def test_nonsense_directives_are_bad_requests(patch: JSONObject) -> None:
    with pytest.raises(PatchError) as caught:
        patched_spec({"containers": [{"name": "a"}]}, patch)
    assert caught.value.code == 400


def test_kinds_unknown_here_still_merge_metadata_as_all_do() -> None:
    document: JSONObject = {"kind": "Widget", "metadata": {"finalizers": ["a"]}, "list": [1]}
    result = patched(document, {"metadata": {"finalizers": ["b"]}, "list": [2]}, "Widget")
    assert result == {"kind": "Widget", "metadata": {"finalizers": ["b", "a"]}, "list": [2]}
