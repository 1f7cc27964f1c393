from __future__ import annotations

from typing import cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import NODES, Node
from mcm.api.machine import MACHINES, Machine
from mcm.api.meta import JSONObject
from mcm.api.patches import merged
from mcm.client.requests import Call, PatchType, patch_body
from mcm.informers.authorship import holds_nothing_else

META: JSONObject = {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "5"}
READY = {"type": "Ready", "status": "True"}
GOING = {"type": "Terminating", "status": "True"}


def call(patch: JSONObject, kind: PatchType = PatchType.MERGE, *, verb: str = "PATCH") -> Call:
    resource = MACHINES if kind is PatchType.MERGE else NODES
    body = patch_body(resource, "a", patch, kind)
    return Call(verb, verb, "/", headers={"Content-Type": kind.value}, body=body)


def machine(**parts: object) -> Machine:
    metadata = {**META, **cast("JSONObject", parts.pop("metadata", {}))}
    return msgspec.convert({"metadata": metadata, **parts}, Machine)


def node(*, conditions: list[JSONObject] | None = None, **metadata: object) -> Node:
    document = {"metadata": {**META, **metadata}, "status": {"conditions": conditions or []}}
    return msgspec.convert(document, Node)


GONE = "2026-01-01T00:00:00Z"
NEWER: JSONObject = {"resourceVersion": "6", "generation": 2}
LABELLED: JSONObject = {"metadata": {"uid": "u", "labels": {"x": "y"}}}


def test_an_answer_that_is_the_patch_and_a_new_version_holds_nothing_else() -> None:
    answer = machine(metadata={**NEWER, "labels": {"x": "y"}})
    assert holds_nothing_else(machine(), call(LABELLED), answer)


@pytest.mark.parametrize(
    "answer",
    [
        machine(metadata={**NEWER, "labels": {"x": "y", "theirs": "too"}}),
        machine(metadata={**NEWER, "labels": {"x": "another"}}),
        machine(metadata={**NEWER, "labels": {"x": "y"}}, spec={"providerID": "p"}),
        machine(
            metadata={**NEWER, "labels": {"x": "y"}, "deletionTimestamp": "2026-01-01T00:00:00Z"}
        ),
        machine(metadata={**NEWER, "labels": {"x": "y"}, "uid": "successor"}),
    ],
)
def test_whatever_others_changed_meanwhile_is_news(answer: Machine) -> None:
    assert not holds_nothing_else(machine(), call(LABELLED), answer)


def test_a_deletion_is_news_to_whoever_asked_for_it() -> None:
    assert not holds_nothing_else(machine(), call({}, verb="DELETE"), machine(metadata=NEWER))


_documents = st.fixed_dictionaries(
    {},
    optional={
        "spec": st.fixed_dictionaries({}, optional={"providerID": st.sampled_from("pq")}),
        "status": st.fixed_dictionaries({}, optional={"lastKnownState": st.sampled_from("st")}),
        "metadata": st.fixed_dictionaries(
            {},
            optional={
                "labels": st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy")),
                "finalizers": st.lists(st.sampled_from("fg"), unique=True),
            },
        ),
    },
)


@given(before=_documents, patch=_documents, theirs=_documents)
def test_only_what_the_patch_explains_is_our_own(
    before: JSONObject, patch: JSONObject, theirs: JSONObject
) -> None:
    old = machine(**before)
    ours = msgspec.convert(merged(msgspec.to_builtins(old), patch), Machine)
    answer = msgspec.convert(merged(msgspec.to_builtins(ours), theirs), Machine)
    assert holds_nothing_else(old, call(patch), answer) == (answer == ours)


STRATEGIC = PatchType.STRATEGIC


@pytest.mark.parametrize(
    ("patch", "before", "after", "expected"),
    [
        ({"finalizers": ["ours"]}, ["theirs"], ["theirs", "ours"], True),
        ({"finalizers": ["ours"]}, ["theirs"], ["ours"], False),
        ({"finalizers": ["ours"]}, [], ["ours", "theirs"], False),
        ({"$deleteFromPrimitiveList/finalizers": ["ours"]}, ["a", "ours"], ["a"], True),
        ({"$deleteFromPrimitiveList/finalizers": ["ours"]}, ["a", "ours"], ["a", "b"], False),
        ({"$setElementOrder/finalizers": ["a"]}, ["a"], ["a"], False),
    ],
)
def test_a_strategic_patch_adds_and_removes_single_finalizers(
    patch: JSONObject, before: list[str], after: list[str], *, expected: bool
) -> None:
    old, new = node(finalizers=before), node(finalizers=after)
    assert holds_nothing_else(old, call({"metadata": patch}, STRATEGIC), new) is expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([READY], [READY, GOING], True),
        ([READY], [GOING, READY], True),
        ([READY], [GOING], False),
        ([READY], [GOING, {**READY, "status": "False"}], False),
        ([], [GOING], True),
        ([{**GOING, "status": "False"}], [GOING], True),
    ],
)
def test_a_strategic_patch_replaces_conditions_by_type(
    before: list[JSONObject], after: list[JSONObject], *, expected: bool
) -> None:
    patch = call({"status": {"conditions": [GOING]}}, STRATEGIC)
    assert holds_nothing_else(node(conditions=before), patch, node(conditions=after)) is expected


def test_what_a_json_patch_did_is_not_worked_out() -> None:
    body = msgspec.json.encode([])
    json_patch = Call("PATCH", "PATCH", "/", headers={"Content-Type": PatchType.JSON}, body=body)
    assert not holds_nothing_else(machine(), json_patch, machine(metadata=NEWER))
