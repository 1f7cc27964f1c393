"""The annotation of ``mcm drain`` on a Node: what is ours, and what each patch leaves."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from mcm.api.core import Node, NodeSpec
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.api.names import ANNOTATION_DRAIN_RECORD, ANNOTATION_DRAINED_BY
from mcm.node_commands.drain_mark import DrainMark, begun, finished, kept, lifted, mark_of, stopped

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def node(*, cordoned: bool = False, mark: str = "", record: str = "") -> Node:
    annotations = {
        name: text
        for name, text in ((ANNOTATION_DRAINED_BY, mark), (ANNOTATION_DRAIN_RECORD, record))
        if text
    }
    meta = ObjectMeta(name="n", uid="u", resource_version="7", annotations=annotations)
    return Node(metadata=meta, spec=NodeSpec(unschedulable=cordoned))


def patched(before: Node, patch: JSONObject | None) -> Node:
    """What the server makes of a patch, which must be bound to what was read."""
    assert patch is not None
    metadata = patch["metadata"]
    assert isinstance(metadata, dict)
    assert metadata["uid"] == before.metadata.uid
    annotations = {**before.metadata.annotations, **metadata.get("annotations", {})}
    meta = msgspec.structs.replace(
        before.metadata, annotations={k: v for k, v in annotations.items() if v is not None}
    )
    spec = patch.get("spec", {})
    assert isinstance(spec, dict)
    cordoned = spec.get("unschedulable", before.spec.unschedulable)
    return Node(metadata=meta, spec=NodeSpec(unschedulable=cordoned))


def drained(before: Node) -> Node:
    return patched(before, begun(before, by="alice@a", run="r1", now=NOW, record="{}"))


def test_a_node_is_cordoned_and_says_by_whom() -> None:
    after = drained(node())
    assert after.spec.unschedulable
    assert mark_of(after) == DrainMark(by="alice@a", since=NOW, run="r1", cordoned=True)


def test_it_is_bound_to_the_version_seen_so_that_no_cordon_in_between_is_taken_for_ours() -> None:
    patch = begun(node(), by="alice@a", run="r1", now=NOW, record="{}")
    assert patch["metadata"]["resourceVersion"] == "7"  # type: ignore[index]


def test_a_cordon_that_was_there_is_not_ours_and_stays() -> None:
    after = drained(node(cordoned=True))
    mark = mark_of(after)
    assert mark is not None and not mark.cordoned
    undone = patched(after, lifted(after))
    assert undone.spec.unschedulable and undone.metadata.annotations == {}


def test_who_goes_on_keeps_the_first_moment_and_the_cordon() -> None:
    first = drained(node())
    again = patched(
        first, begun(first, by="bob@b", run="r2", now=NOW + timedelta(hours=1), record="{}")
    )
    assert mark_of(again) == DrainMark(by="bob@b", since=NOW, run="r2", cordoned=True)


def test_a_node_that_somebody_uncordoned_is_cordoned_again_as_ours() -> None:
    foreign = drained(node(cordoned=True))
    open_again = Node(metadata=foreign.metadata, spec=NodeSpec())
    after = drained(open_again)
    mark = mark_of(after)
    assert after.spec.unschedulable and mark is not None and mark.cordoned


def test_an_empty_node_keeps_what_uncordon_needs_and_no_record() -> None:
    before = drained(node(record="{}"))
    after = patched(before, finished(before, "r1"))
    mark = mark_of(after)
    assert mark is not None and mark.cordoned and mark.run == ""
    assert ANNOTATION_DRAIN_RECORD not in after.metadata.annotations


def test_an_empty_node_with_a_foreign_cordon_keeps_nothing() -> None:
    before = drained(node(cordoned=True, record="{}"))
    assert patched(before, finished(before, "r1")).metadata.annotations == {}


def test_the_record_is_kept_beside_the_mark() -> None:
    before = drained(node(record="{}"))
    after = patched(before, kept(before, "r1", '{"mode":"none"}'))
    assert after.metadata.annotations[ANNOTATION_DRAIN_RECORD] == '{"mode":"none"}'
    assert mark_of(after) == mark_of(before) and after.spec.unschedulable


def test_a_stop_leaves_the_record_for_who_goes_on() -> None:
    before = drained(node(record="{}"))
    after = patched(before, stopped(before, "r1"))
    assert after.metadata.annotations[ANNOTATION_DRAIN_RECORD] == "{}"
    mark = mark_of(after)
    assert mark is not None and mark.run == "" and after.spec.unschedulable


@pytest.mark.parametrize("end", [finished, stopped, lambda node, run: kept(node, run, "{}")])
def test_a_run_that_was_taken_over_writes_nothing_in_the_end(end: object) -> None:
    taken = drained(node())
    assert callable(end)
    assert end(taken, "another") is None
    assert end(node(), "r1") is None


def test_nothing_of_ours_is_nothing_to_undo() -> None:
    assert lifted(node(cordoned=True)) is None


def test_a_cordon_that_somebody_lifted_before_leaves_only_the_record() -> None:
    before = drained(node())
    open_again = Node(metadata=before.metadata, spec=NodeSpec())
    patch = lifted(open_again)
    assert patch is not None and "spec" not in patch


@pytest.mark.parametrize(
    "text",
    ["", "no json", "[]", "{}", '{"by":7,"since":"x"}', '{"by":"a","since":"2026-05-01T12:00:00"}'],
)
def test_a_mark_that_nobody_can_read_makes_no_cordon_ours(text: str) -> None:
    before = node(cordoned=True, mark=text)
    assert mark_of(before) is None
    patch = lifted(before)
    assert patch is None or "spec" not in patch


def test_what_is_written_can_be_read_by_people() -> None:
    text = drained(node()).metadata.annotations[ANNOTATION_DRAINED_BY]
    assert json.loads(text) == {
        "by": "alice@a",
        "since": "2026-05-01T12:00:00Z",
        "run": "r1",
        "cordoned": True,
    }
