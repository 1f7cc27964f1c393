"""What of a node template no API server would take, and that the rest of it is applied."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Taint
from mcm.api.machine import NodeTemplateSpec, TemplateMeta, TemplateNodeSpec
from mcm.api.names import (
    ANNOTATION_CORDONED_BY_MCM,
    ANNOTATION_NOT_MANAGED_BY_MCM,
    ANNOTATION_PRESERVE,
    ANNOTATION_SCALE_DOWN_DISABLED,
    ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
    ANNOTATION_TRIGGER_DELETION,
    LABEL_CANDIDATE_FOR_UPDATE,
    LABEL_SELECTED_FOR_UPDATE,
    LABEL_UPDATE_RESULT,
    TAINT_CRITICAL_COMPONENTS_NOT_READY,
    TAINT_INSTANCE_NOT_READY,
    TAINT_PREFER_NO_SCHEDULE,
    TAINT_PRESERVED,
)
from mcm.controllers.machine.node.template_faults import applicable, faults_of_capacity

LONG = "x" * 64


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


@pytest.mark.parametrize(
    ("key", "value", "valid"),
    [
        ("pool", "a", True),
        ("example.org/pool", "", True),
        ("A_b-c.9", "A_b-c.9", True),
        ("x" * 63, "y" * 63, True),
        ("", "a", False),
        ("with space", "a", False),
        ("-pool", "a", False),
        ("a/b/c", "a", False),
        ("/pool", "a", False),
        ("example.org/", "a", False),
        ("Example.org/pool", "a", False),
        (f"{'a' * 64}.org/pool", "a", False),
        (LONG, "a", False),
        ("größe", "a", False),
        ("pool", LONG, False),
        ("pool", "two words", False),
        ("pool", "-a", False),
        ("pool", "a\n", False),
        ("pool", "日本", False),
    ],
)
def test_labels_follow_the_rules_of_kubernetes(key: str, value: str, *, valid: bool) -> None:
    found = applicable(template({key: value, "other": "x"}))
    assert bool(found.faults) != valid
    labels = found.template.metadata.labels if found.template.metadata else None
    assert labels == ({key: value, "other": "x"} if valid else {"other": "x"})


@pytest.mark.parametrize(
    "marked",
    [
        *(
            template(labels={key: "true"})
            for key in (LABEL_CANDIDATE_FOR_UPDATE, LABEL_SELECTED_FOR_UPDATE, LABEL_UPDATE_RESULT)
        ),
        *(
            template(annotations={key: "true"})
            for key in (
                ANNOTATION_CORDONED_BY_MCM,
                ANNOTATION_NOT_MANAGED_BY_MCM,
                ANNOTATION_SCALE_DOWN_DISABLED_BY_MCM,
                ANNOTATION_TRIGGER_DELETION,
            )
        ),
        template(annotations={ANNOTATION_PRESERVE: "auto-preserved"}),
        template(taints=(taint(TAINT_PRESERVED),)),
        template(taints=(taint(TAINT_PREFER_NO_SCHEDULE, "True", "PreferNoSchedule"),)),
    ],
    ids=str,
)
def test_marks_of_one_node_are_not_for_templates(marked: NodeTemplateSpec) -> None:
    """Applied, each would be put back whenever the step that owns it takes it away."""
    found = applicable(marked)
    (fault,) = found.faults
    assert "is not for templates" in fault
    assert found.template.metadata is not None
    assert found.template.spec is not None
    assert not found.template.metadata.labels
    assert not found.template.metadata.annotations
    assert not found.template.spec.taints


def test_what_a_pool_may_say_of_all_its_nodes_is_applied() -> None:
    asked = template(
        annotations={ANNOTATION_PRESERVE: "when-failed", ANNOTATION_SCALE_DOWN_DISABLED: "true"},
        taints=(taint(TAINT_INSTANCE_NOT_READY), taint(TAINT_CRITICAL_COMPONENTS_NOT_READY)),
    )
    assert applicable(asked).template is asked


@pytest.mark.parametrize(
    ("key", "value", "valid"),
    [
        ("note", "anything at all\n日本 " + LONG, True),
        ("Example.org/Note", "", True),
        ("two words", "a", False),
        ("", "a", False),
        (LONG, "a", False),
    ],
)
def test_annotations_have_keys_like_labels_and_any_value(
    key: str, value: str, *, valid: bool
) -> None:
    found = applicable(template(annotations={key: value, "other": "x"}))
    assert bool(found.faults) != valid
    kept = found.template.metadata.annotations if found.template.metadata else None
    assert kept == ({key: value, "other": "x"} if valid else {"other": "x"})


@pytest.mark.parametrize(
    ("listed", "kept", "words"),
    [
        ((taint("a"), taint("b")), (0, 1), ""),
        ((taint("a"), taint("a", effect="NoExecute")), (0, 1), ""),
        ((taint("a", "v"), taint("a", "w")), (0,), "taints[1]: another taint has the same"),
        ((taint(""), taint("b")), (1,), "taints[0]: the key"),
        ((taint("a b"),), (), "taints[0]: the key"),
        ((taint("a", LONG),), (), "taints[0]: the value"),
        ((taint("a", effect="Never"), taint("b")), (1,), "taints[0]: the effect must be one of"),
        ((taint("a", effect=""),), (), "the effect must be one of NoSchedule, PreferNoSchedule"),
    ],
)
def test_taints_follow_the_rules_of_kubernetes(
    listed: tuple[Taint, ...], kept: tuple[int, ...], words: str
) -> None:
    found = applicable(template(taints=listed))
    assert (found.template.spec.taints if found.template.spec else None) == tuple(
        listed[i] for i in kept
    )
    assert words in "; ".join(found.faults)
    assert bool(found.faults) == bool(words)


def test_a_fault_names_its_field_and_never_quotes_without_end() -> None:
    found = applicable(template({"a b": "x"}, {"y" * 9000: "z"}))
    assert found.faults[0].startswith("spec.nodeTemplate.metadata.labels[a b]: the key must be")
    assert found.faults[1].startswith("spec.nodeTemplate.metadata.annotations[yyy")
    assert len(found.faults[1]) < 300


@pytest.mark.parametrize(
    ("amounts", "wrong"),
    [
        ({"sub/x": "10", "cpu": 4}, []),
        ({"sub/x": "many", "y": "1"}, ["sub/x"]),
        ({"sub/x": "-1"}, ["sub/x"]),
        ({"a b": "1"}, ["a b"]),
        ({"x": ""}, ["x"]),
    ],
)
def test_virtual_capacity_consists_of_quantities(
    amounts: dict[str, str | int], wrong: list[str]
) -> None:
    assert list(faults_of_capacity(amounts)) == wrong


_TEXTS = st.text(st.sampled_from("aZ9-_./ é\n"), max_size=70)
_MAPS = st.none() | st.dictionaries(_TEXTS, _TEXTS, max_size=3)
_TAINTS = st.none() | st.lists(
    st.builds(taint, _TEXTS, _TEXTS, st.sampled_from(["NoSchedule", "NoExecute", "", "x"])),
    max_size=3,
).map(tuple)


@given(_MAPS, _MAPS, _TAINTS)
def test_what_is_left_is_valid_and_what_was_valid_is_left(
    labels: dict[str, str] | None,
    annotations: dict[str, str] | None,
    taints: tuple[Taint, ...] | None,
) -> None:
    wanted = template(labels, annotations, taints)
    found = applicable(wanted)
    again = applicable(found.template)
    assert again.faults == ()
    assert again.template is found.template
    if not found.faults:
        assert found.template is wanted
    left = (found.template.metadata.labels if found.template.metadata else None) or {}
    assert left.items() <= (labels or {}).items()


def test_no_template_is_no_fault() -> None:
    assert applicable(None).faults == ()
