from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Node, Taint
from mcm.api.machine import (
    MachineClass,
    MachineClassNodeTemplate,
    NodeTemplateSpec,
    TemplateMeta,
    TemplateNodeSpec,
)
from mcm.api.meta import JSONObject
from mcm.api.names import NODE_FINALIZER
from mcm.controllers.machine.node.capacity import capacity_patch, faults_of_class
from mcm.controllers.machine.node.template import (
    encode_template,
    node_patch,
    parts_of,
    release_patch,
)
from tests.unit.machine.objects import BORN, after, class_, machine, node

NAME = "node.gardener.cloud/machine-name"
RECORD = "node.machine.sapcloud.io/last-applied-anno-labels-taints"
CAPACITY_RECORD = "node.machine.sapcloud.io/last-applied-virtual-capacity"


def template(
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    taints: tuple[Taint, ...] | None = None,
) -> NodeTemplateSpec:
    return NodeTemplateSpec(
        metadata=TemplateMeta(labels=labels, annotations=annotations),
        spec=TemplateNodeSpec(taints=taints),
    )


def taint(key: str, value: str = "", effect: str = "NoSchedule") -> Taint:
    return Taint(key=key, value=value, effect=effect)


def settled(
    applied: NodeTemplateSpec | None = None,
    *,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
) -> Node:
    """A Node that has our finalizer and name, and the record of ``applied``."""
    every = dict(annotations or {})
    if applied is not None:
        every[RECORD] = encode_template(applied)
    return node(
        labels={NAME: "m", **(labels or {})},
        annotations=every,
        taints=taints,
        finalizers=(NODE_FINALIZER,),
    )


def patch(found: Node, wanted: NodeTemplateSpec | None) -> JSONObject | None:
    return node_patch(found, machine(template=wanted), None)


def part(patch_: JSONObject | None, *path: str) -> object:
    found: object = patch_
    for key in path:
        assert isinstance(found, dict)
        found = found[key]
    return found


def test_a_new_node_gets_everything_in_one_patch() -> None:
    wanted = template({"pool": "a"}, {"note": "x"}, (taint("dedicated", "a"),))
    result = patch(node(taints=(taint("not-ready"),), finalizers=("other",)), wanted)
    assert result == {
        "metadata": {
            "uid": "uid-n",
            "resourceVersion": "9",
            "labels": {"pool": "a", NAME: "m"},
            "annotations": {"note": "x", RECORD: encode_template(wanted)},
            "finalizers": [NODE_FINALIZER],
        },
        "spec": {
            "taints": [
                {"key": "not-ready", "effect": "NoSchedule"},
                {"key": "dedicated", "value": "a", "effect": "NoSchedule"},
            ]
        },
    }


def test_a_patch_without_taints_does_not_care_what_the_kubelet_writes() -> None:
    assert part(patch(node(), template({"pool": "a"})), "metadata").keys() == {  # type: ignore[attr-defined]
        "uid",
        "labels",
        "annotations",
        "finalizers",
    }


def test_a_node_as_it_should_be_costs_nothing() -> None:
    wanted = template({"pool": "a"}, {"note": "x"}, (taint("dedicated"),))
    found = settled(
        wanted, labels={"pool": "a"}, annotations={"note": "x"}, taints=(taint("dedicated"),)
    )
    assert patch(found, wanted) is None
    assert patch(settled(), None) is None


def test_what_leaves_the_template_leaves_the_node_and_the_rest_stays() -> None:
    applied = template({"a": "1", "b": "2"}, {"c": "3"}, (taint("old"),))
    found = settled(
        applied,
        labels={"a": "1", "b": "2", "mine": "x"},
        annotations={"c": "3", "yours": "y"},
        taints=(taint("theirs"), taint("old")),
    )
    result = patch(found, template({"a": "1"}))
    assert part(result, "metadata", "labels") == {"b": None}
    assert part(result, "metadata", "annotations", "c") is None
    assert part(result, "spec", "taints") == [{"key": "theirs", "effect": "NoSchedule"}]


def test_a_value_edited_by_hand_is_restored() -> None:
    wanted = template({"pool": "a"})
    result = patch(settled(wanted, labels={"pool": "edited"}), wanted)
    assert part(result, "metadata", "labels") == {"pool": "a"}


def test_a_taint_keeps_its_place_and_the_time_it_was_added() -> None:
    added = Taint(key="t", effect="NoExecute", time_added=BORN)
    applied = template(taints=(Taint(key="t", effect="NoExecute"),))
    found = settled(applied, taints=(added, taint("x")))
    assert patch(found, applied) is None
    changed = template(taints=(Taint(key="t", effect="NoExecute", value="v"),))
    assert part(patch(found, changed), "spec", "taints") == [
        {"key": "t", "value": "v", "effect": "NoExecute"},
        {"key": "x", "effect": "NoSchedule"},
    ]


def test_what_is_ours_cannot_be_taken_over_by_a_template() -> None:
    greedy = template({NAME: "other"}, {RECORD: "mine", CAPACITY_RECORD: "mine"})
    found = settled(greedy)
    assert patch(found, greedy) is None


def test_taints_are_told_apart_by_key_and_effect() -> None:
    wanted = template(taints=(taint("k", "v", "NoExecute"),))
    found = settled(None, taints=(taint("k", "v", "NoSchedule"),))
    assert part(patch(found, wanted), "spec", "taints") == [
        {"key": "k", "value": "v", "effect": "NoSchedule"},
        {"key": "k", "value": "v", "effect": "NoExecute"},
    ]


@pytest.mark.parametrize("text", ["{", "[]", '{"metadata": {"labels": [1]}}', "null"])
def test_a_record_nobody_can_read_is_replaced(text: str) -> None:
    found = settled(None, labels={"pool": "a"}, annotations={RECORD: text})
    result = patch(found, template({"pool": "a"}))
    assert part(result, "metadata", "annotations", RECORD) == encode_template(
        template({"pool": "a"})
    )


def test_the_go_originals_record_is_understood() -> None:
    text = (
        '{"metadata":{"creationTimestamp":null,"labels":{"pool":"demo"},'
        '"annotations":{"note":"hello"}},"spec":{"taints":[{"key":"dedicated","value":"demo",'
        '"effect":"NoSchedule"}]}}'
    )
    wanted = template({"pool": "demo"}, {"note": "hello"}, (taint("dedicated", "demo"),))
    found = settled(
        None,
        labels={"pool": "demo"},
        annotations={RECORD: text, "note": "hello"},
        taints=(taint("dedicated", "demo"),),
    )
    assert patch(found, wanted) is None


GATE = "node.machine.sapcloud.io/instance-not-ready"
GATED = template({"pool": "a"}, taints=(taint(GATE), taint("t")))


@pytest.mark.parametrize(
    ("phase", "admitted", "applied", "wanted", "present", "expected"),
    [
        pytest.param("Pending", False, None, None, (GATE, "x"), None, id="joining: it stays"),
        pytest.param("", False, None, None, (GATE,), None, id="not initialized: it stays"),
        pytest.param("Pending", True, None, None, (GATE, "x"), ["x"], id="about to run: it goes"),
        pytest.param("Running", True, None, None, (GATE, "x"), ["x"], id="it runs: it goes"),
        pytest.param("Unknown", False, None, None, (GATE,), None, id="not ready again: as found"),
        pytest.param("Pending", False, None, GATED, (), [GATE, "t"], id="a template may have it"),
        pytest.param("Pending", True, GATED, GATED, (GATE, "t"), ["t"], id="until it runs"),
        pytest.param("Running", True, GATED, GATED, ("t",), None, id="and never again"),
        pytest.param("Unknown", False, GATED, GATED, ("t",), None, id="nor when it is unhealthy"),
        pytest.param("Unknown", False, GATED, None, (GATE, "t"), [GATE], id="nobody's to remove"),
    ],
)
def test_the_taint_that_keeps_pods_away_goes_when_the_machine_runs(
    phase: str,
    *,
    admitted: bool,
    applied: NodeTemplateSpec | None,
    wanted: NodeTemplateSpec | None,
    present: tuple[str, ...],
    expected: list[str] | None,
) -> None:
    found = settled(applied, taints=tuple(map(taint, present)), labels={"pool": "a"})
    result = node_patch(found, machine(phase=phase, template=wanted), None, admitted=admitted)
    spec = (result or {}).get("spec")
    keys = None if spec is None else [t["key"] for t in part(result, "spec", "taints")]  # type: ignore[attr-defined]
    assert keys == expected


def test_what_is_invalid_in_a_template_keeps_nothing_else_from_the_node() -> None:
    wanted = template({"a b": "x", "pool": "a"}, {"note": "x"}, (taint("t", effect="Never"),))
    result = patch(settled(), wanted)
    assert part(result, "metadata", "labels") == {"pool": "a"}
    assert "spec" not in (result or {})
    valid = template({"pool": "a"}, {"note": "x"}, ())
    assert part(result, "metadata", "annotations") == {
        "note": "x",
        RECORD: encode_template(valid),
    }


def test_a_patch_comes_apart_and_its_parts_make_the_whole() -> None:
    wanted = template({"pool": "a"}, {"note": "x"}, (taint("dedicated", "a"),))
    whole = patch(node(taints=(taint("not-ready"),)), wanted)
    assert whole is not None
    parts = parts_of(whole)
    assert list(parts) == ["taints", "finalizer and machine name", "labels", "annotations"]
    metadata: dict[str, object] = {}
    labels: dict[str, object] = {}
    for body in parts.values():
        found = body["metadata"]
        assert isinstance(found, dict)
        assert found["uid"] == "uid-n"
        labels.update(found.get("labels", {}))
        metadata.update(found)
    assert {**metadata, "labels": labels} == whole["metadata"]
    assert parts["taints"]["spec"] == whole["spec"]
    assert "resourceVersion" not in str(parts["labels"])


def test_a_time_in_the_template_is_no_difference() -> None:
    timed = template(taints=(Taint(key="t", effect="NoExecute", time_added=BORN),))
    found = settled(timed, taints=(Taint(key="t", effect="NoExecute", time_added=after(days=1)),))
    assert patch(found, timed) is None


def test_a_machine_whose_name_fits_no_label_still_gets_its_finalizer_and_labels() -> None:
    long = machine("m" * 64, template=template({"pool": "a"}))
    result = node_patch(node(), long, None)
    assert part(result, "metadata", "labels") == {"pool": "a"}
    assert part(result, "metadata", "finalizers") == [NODE_FINALIZER]


def test_our_finalizer_is_taken_off_beside_those_of_others() -> None:
    held = node(finalizers=("other", NODE_FINALIZER))
    assert release_patch(held) == {
        "metadata": {"uid": "uid-n", "$deleteFromPrimitiveList/finalizers": [NODE_FINALIZER]}
    }
    assert release_patch(node(finalizers=("other",))) is None


def with_capacity(**virtual: str) -> MachineClass:
    wanted = MachineClassNodeTemplate(virtual_capacity=dict(virtual))
    return msgspec.structs.replace(class_(), node_template=wanted)


@pytest.mark.parametrize(
    ("present", "recorded", "wanted", "patch_"),
    [
        ({}, {}, {"sub/x": "10"}, {"sub/x": "10"}),
        ({"sub/x": "10"}, {}, {"sub/x": "10"}, None),
        ({"sub/x": "10k"}, {}, {"sub/x": "10000"}, None),
        ({"sub/x": "1", "cpu": "4"}, {"sub/x": "1"}, {}, {"sub/x": None}),
        ({"cpu": "4"}, {"sub/x": "1"}, {}, None),
        ({"sub/x": "1"}, {"sub/x": "1"}, {"sub/x": "2"}, {"sub/x": "2"}),
    ],
)
def test_virtual_capacity_follows_the_class(
    present: dict[str, str],
    recorded: dict[str, str],
    wanted: dict[str, str],
    patch_: dict[str, str | None] | None,
) -> None:
    annotations = {CAPACITY_RECORD: json.dumps(recorded)} if recorded else {}
    found = node(capacity=present, annotations=annotations)
    result = capacity_patch(found, with_capacity(**wanted))
    assert result == (None if patch_ is None else {"status": {"capacity": patch_}})


def test_an_amount_nobody_can_read_keeps_no_other_away() -> None:
    found = settled()
    broken = with_capacity(**{"sub/x": "many", "sub/y": "2"})
    assert capacity_patch(found, broken) == {"status": {"capacity": {"sub/y": "2"}}}
    fault = faults_of_class(broken)["sub/x"]
    assert fault.startswith("machine class c: nodeTemplate.virtualCapacity[sub/x]: must be a quant")


def test_without_class_nothing_is_taken_away() -> None:
    found = node(capacity={"sub/x": "1"}, annotations={CAPACITY_RECORD: '{"sub/x":"1"}'})
    assert capacity_patch(found, None) is None
    assert capacity_patch(found, class_()) is None


def test_the_record_of_the_capacity_follows_it() -> None:
    found = settled()
    first = node_patch(found, machine(), with_capacity(**{"sub/x": "1"}))
    assert part(first, "metadata", "annotations") == {CAPACITY_RECORD: '{"sub/x":"1"}'}
    recorded = settled(annotations={CAPACITY_RECORD: '{"sub/x":"1"}'})
    assert node_patch(recorded, machine(), with_capacity(**{"sub/x": "1"})) is None
    gone = node_patch(recorded, machine(), with_capacity())
    assert part(gone, "metadata", "annotations") == {CAPACITY_RECORD: None}


maps = st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3)
taints = st.lists(
    st.builds(taint, st.sampled_from("kl"), st.sampled_from(["", "v"])),
    max_size=2,
    unique_by=lambda t: t.key,
).map(tuple)
templates = st.builds(template, maps, maps, taints)


def applied_to(found: Node, patch_: JSONObject | None) -> Node:
    """What the server makes of the patch: maps merged, finalizers added, taints replaced."""
    if patch_ is None:
        return found
    meta = patch_["metadata"]
    assert isinstance(meta, dict)

    def merge(present: dict[str, str], change: dict[str, str | None]) -> dict[str, str]:
        result: dict[str, str | None] = {**present, **change}
        return {k: v for k, v in result.items() if v is not None}

    metadata = msgspec.structs.replace(
        found.metadata,
        labels=merge(found.metadata.labels, meta.get("labels", {})),
        annotations=merge(found.metadata.annotations, meta.get("annotations", {})),
        finalizers=(*found.metadata.finalizers, *meta.get("finalizers", [])),
    )
    spec = patch_.get("spec")
    if spec is None:
        return msgspec.structs.replace(found, metadata=metadata)
    return msgspec.structs.replace(
        found, metadata=metadata, spec=msgspec.convert(spec, type(found.spec))
    )


@given(first=templates, second=templates, foreign=taints)
def test_applying_a_patch_settles_the_node_and_leaves_what_is_foreign(
    first: NodeTemplateSpec, second: NodeTemplateSpec, foreign: tuple[Taint, ...]
) -> None:
    others = tuple(msgspec.structs.replace(t, key=f"foreign-{t.key}") for t in foreign)
    found = node(labels={"foreign": "x"}, taints=others)
    for wanted in (first, second):
        found = applied_to(found, patch(found, wanted))
        assert patch(found, wanted) is None
    assert found.metadata.labels["foreign"] == "x"
    assert set(others) <= set(found.spec.taints)
    wanted_labels = (second.metadata.labels if second.metadata else None) or {}
    assert found.metadata.labels == {"foreign": "x", NAME: "m", **wanted_labels}
