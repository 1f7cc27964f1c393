"""What the webhook answers to reviews, without a server."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.patches import apply_merge_patch
from mcm.webhook.review import BadReview, answer

POOL: JSONObject = {
    "apiVersion": "machine.sapcloud.io/v1alpha1",
    "kind": "MachineDeployment",
    "metadata": {"name": "pool", "namespace": "ns"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"name": "pool"}},
        "template": {
            "metadata": {"labels": {"name": "pool"}},
            "spec": {"class": {"kind": "MachineClass", "name": "small"}},
        },
    },
}
INVALID = apply_merge_patch(POOL, {"spec": {"replicas": -1}})


def review(
    new: object,
    old: object = None,
    *,
    operation: str = "",
    plural: str = "machinedeployments",
    subresource: str = "",
    group: str = "machine.sapcloud.io",
) -> bytes:
    request = {
        "uid": "u1",
        "kind": {"group": group, "version": "v1alpha1", "kind": "MachineDeployment"},
        "name": "pool",
        "resource": {"group": group, "version": "v1alpha1", "resource": plural},
        "operation": operation or ("CREATE" if old is None else "UPDATE"),
        "object": new,
        "oldObject": old,
    }
    if subresource:
        request["subResource"] = subresource
    asked = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(asked).encode()


def respond(body: bytes, max_replicas: int = 1000) -> JSONObject:
    reviewed, _ = answer(body, max_replicas=max_replicas)
    assert (reviewed["apiVersion"], reviewed["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    response = reviewed["response"]
    assert isinstance(response, dict) and response["uid"] == "u1"
    return response


def message_of(response: JSONObject) -> str:
    assert response["allowed"] is False
    status = response["status"]
    assert isinstance(status, dict) and (status["code"], status["reason"]) == (422, "Invalid")
    return str(status["message"])


def test_a_good_object_is_let_in_without_a_word() -> None:
    assert respond(review(POOL)) == {"uid": "u1", "allowed": True}


@pytest.mark.parametrize("depth", [600, 5000, 50_000])
def test_what_is_nested_too_deep_is_refused_on_every_version_of_python(depth: int) -> None:
    told = review({"metadata": {"name": "c"}, "providerSpec": "DEEP"}, plural="machineclasses")
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    message = message_of(respond(told.replace(b'"DEEP"', deep)))
    assert "Nested too deep to be read" in message and "providerSpec" in message


def test_an_error_is_refused_by_name_and_a_warning_is_told() -> None:
    bad = apply_merge_patch(
        POOL, {"spec": {"replicas": 1001, "progressDeadlineSeconds": 0, "minReadySeconds": 5}}
    )
    response = respond(review(bad))
    assert message_of(response) == (
        "spec.replicas: Invalid value 1001: must be at most 1000, which --max-replicas allows"
    )
    status = response["status"]
    assert isinstance(status, dict)
    complaint = "Invalid value 1001: must be at most 1000, which --max-replicas allows"
    assert status["details"] == {
        "group": "machine.sapcloud.io",
        "kind": "MachineDeployment",
        "name": "pool",
        "causes": [{"reason": "FieldValueInvalid", "field": "spec.replicas", "message": complaint}],
    }
    assert response["warnings"] == [
        (
            "spec.progressDeadlineSeconds: 0: is not more than minReadySeconds (5): "
            "every update will seem stuck"
        )
    ]


@pytest.mark.parametrize(
    ("change", "allowed"),
    [
        ({"metadata": {"labels": {"a": "b"}}}, True),
        ({"metadata": {"finalizers": []}}, True),
        ({"status": {"replicas": 3}}, True),
        ({"spec": {"paused": True}}, True),
        ({"spec": {"replicas": 2}}, True),
        ({"spec": {"replicas": -2}}, False),
        ({"spec": {"minReadySeconds": -1}}, False),
    ],
)
def test_what_was_invalid_before_may_change_but_not_get_worse(
    change: JSONObject, allowed: bool
) -> None:
    response = respond(review(apply_merge_patch(INVALID, change), INVALID))
    assert response["allowed"] is allowed
    mended = change.get("spec") == {"replicas": 2}
    if allowed and not mended:
        assert response["warnings"] == [
            "spec.replicas: Invalid value -1: Replicas has to be a whole number"
        ]


def test_what_is_being_deleted_may_change_in_any_way() -> None:
    ending = apply_merge_patch(POOL, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    worse = apply_merge_patch(ending, {"spec": {"replicas": -1, "selector": None}})
    assert respond(review(worse, ending)) == {"uid": "u1", "allowed": True}


@pytest.mark.parametrize(
    "body",
    [
        review(None, INVALID, operation="DELETE"),
        review(INVALID, operation="CONNECT"),
        review(INVALID, POOL, subresource="status"),
        review(INVALID, plural="gadgets"),
        review(INVALID, group="apps"),
        review(None, operation="CREATE"),
    ],
)
def test_what_is_not_ours_to_judge_is_let_in(body: bytes) -> None:
    assert respond(body) == {"uid": "u1", "allowed": True}


@pytest.mark.parametrize("plural", ["machinedeployments", "machinesets"])
def test_a_scale_is_judged_by_its_replicas(plural: str) -> None:
    def scaled(replicas: object, before: object = 3) -> JSONObject:
        new, old = {"spec": {"replicas": replicas}}, {"spec": {"replicas": before}}
        return respond(review(new, old, plural=plural, subresource="scale"))

    assert scaled(1000)["allowed"] is True
    assert "spec.replicas: Invalid value 2000000000" in message_of(scaled(2_000_000_000))
    assert "spec.replicas" in message_of(scaled("many"))
    assert scaled(5000, before=5000)["allowed"] is True


@pytest.mark.parametrize(
    ("plural", "obj", "named"),
    [
        ("machinedeployments", {**POOL, "spec": {"replicas": "three"}}, "spec.replicas"),
        ("machinedeployments", {**POOL, "spec": []}, "spec: "),
        ("machinesets", {"metadata": {"generateName": "x-"}, "spec": {"replicas": {}}}, "spec."),
        ("machines", {"metadata": {"name": "m"}, "spec": {}}, "spec.class.kind: Required"),
        ("machineclasses", {"metadata": {"name": "c"}, "nodeTemplate": {}}, "nodeTemplate."),
        ("machines", ["x"], "object"),
    ],
)
def test_every_kind_is_judged_also_where_it_cannot_be_read(
    plural: str, obj: object, named: str
) -> None:
    assert named in message_of(respond(review(obj, plural=plural)))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        b"null",
        b"[" * 200_000,
        orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
        review(POOL).replace(b"k8s.io/v1", b"k8s.io/v1beta1"),
        review(POOL).replace(b'"u1"', b'""'),
    ],
)
def test_what_is_no_review_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(BadReview):
        answer(body, max_replicas=0)


def test_a_long_list_of_troubles_is_cut() -> None:
    labels = {f"key {i} {'x' * 300}": "v" for i in range(500)}
    bad = apply_merge_patch(POOL, {"spec": {"template": {"metadata": {"labels": labels}}}})
    assert len(message_of(respond(review(bad)))) <= 4000


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=10,
)
_plurals = st.sampled_from(["machines", "machineclasses", "machinesets", "machinedeployments"])
_subresources = st.sampled_from(["", "scale", "status"])


@given(new=_json, old=_json, plural=_plurals, subresource=_subresources)
def test_any_objects_are_answered(new: object, old: object, plural: str, subresource: str) -> None:
    response = respond(review(new, old, plural=plural, subresource=subresource))
    again = respond(review(new, new, plural=plural, subresource=subresource, operation="UPDATE"))
    assert response["allowed"] in (True, False)
    assert again["allowed"] is True, "what changes nothing is no worse than before"
