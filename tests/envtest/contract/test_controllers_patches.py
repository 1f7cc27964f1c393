"""The very patches that the machine controllers write, before both servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from datetime import UTC, datetime

import msgspec
import pytest

from mcm.api.core import NODES, Node
from mcm.api.machine import (
    MACHINES,
    Machine,
    MachineStatus,
    NodeTemplateSpec,
    TemplateNodeSpec,
)
from mcm.api.meta import JSONObject
from mcm.api.names import (
    ANNOTATION_IN_FLIGHT_PROVIDER_SPECS,
    ANNOTATION_LAST_APPLIED_PROVIDER_SPEC,
    MACHINE_FINALIZER,
    NODE_FINALIZER,
    TAINT_PRESERVED,
)
from mcm.client.errors import Conflict, Invalid, NotFound
from mcm.client.requests import PatchType
from mcm.clock import SystemClock
from mcm.controllers.finalizers import without_finalizer
from mcm.controllers.in_place_marks import Stage, marks_of
from mcm.controllers.machine import status
from mcm.controllers.machine.deletion.release import with_repairs
from mcm.controllers.machine.hot_update.record import (
    LONGEST,
    WantedSpec,
    brought_to,
    last_applied,
    trying,
)
from mcm.controllers.machine.in_place_update.node_condition import stage_patch
from mcm.controllers.machine.node.template import node_patch, release_patch
from mcm.controllers.machine.own_conditions import OwnCondition, find_own, with_own, without_own
from mcm.controllers.machine.preservation.node_condition import condition_patch, preserved
from mcm.controllers.machine.preservation.node_marks import (
    is_tainted,
    marking_patch,
    unmarking_patch,
)
from mcm.controllers.preconditions import for_this_object, for_this_version
from tests.envtest.bench import STRATEGIC, Bench, Document
from tests.envtest.contract.objects import finalizer, machine, node

NOW = datetime(2026, 1, 1, tzinfo=UTC)
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/machines.machine.sapcloud.io"


# ---- a Node's conditions -------------------------------------------------------------------------


async def test_one_condition_of_a_node_is_set_and_taken_away_for_the_version_seen(
    api: Bench,
) -> None:
    seen = await _node(api)
    await _kubelet_reports(api, seen, "True")
    seen = await api.client.get(NODES, seen.metadata.name)
    begun = stage_patch(seen, marks_of(seen), Stage.CANDIDATE, NOW)
    marked = await _patch_status(api, seen, begun)
    assert {c.type: c.reason for c in marked.status.conditions} == {
        "Ready": "Kubelet",
        "InPlaceUpdate": Stage.CANDIDATE.value,
    }
    with pytest.raises(Conflict):
        await _patch_status(api, seen, stage_patch(seen, marks_of(seen), None, NOW))
    gone = stage_patch(marked, marks_of(marked), None, NOW)
    after = await _patch_status(api, marked, gone)
    assert [(c.type, c.status) for c in after.status.conditions] == [("Ready", "True")]


async def test_a_node_is_said_to_be_preserved_whatever_its_kubelet_wrote_meanwhile(
    api: Bench,
) -> None:
    seen = await _node(api)
    await _kubelet_reports(api, seen, "False")
    patch = condition_patch(seen, preserved("now", NOW), NOW)
    assert patch is not None
    after = await _patch_status(api, seen, patch)
    assert {c.type: c.status for c in after.status.conditions} == {
        "Ready": "False",
        "Preserved": "True",
    }


# ---- a Node's taints -----------------------------------------------------------------------------


async def test_the_taint_of_a_kept_machine_comes_and_goes_alone(api: Bench) -> None:
    seen = await _node(api, {"key": "theirs", "effect": "NoExecute"})
    mark = marking_patch(seen, NOW, annotated=True, tainted=True)
    assert mark is not None
    marked = await api.client.patch(NODES, seen.metadata.name, mark)
    assert is_tainted(marked)
    with pytest.raises(Conflict):
        await api.client.patch(NODES, seen.metadata.name, mark)
    unmark = unmarking_patch(marked, forget=True)
    assert unmark is not None
    after = await api.client.patch(NODES, seen.metadata.name, unmark)
    assert after.spec.taints == seen.spec.taints
    assert not any("disabled" in key for key in after.metadata.annotations)


async def test_the_last_taint_leaves_nothing_behind(api: Bench) -> None:
    seen = await _only_tainted(api, TAINT_PRESERVED)
    patch = marking_patch(seen, NOW, annotated=False, tainted=False)
    assert patch is not None
    after = await api.client.patch(NODES, seen.metadata.name, patch)
    assert after.spec.taints == ()


async def test_a_template_takes_its_last_taint_back_and_our_finalizer_is_one_of_many(
    api: Bench,
) -> None:
    seen = await _only_tainted(api, "ours")
    held = await api.client.patch(
        NODES, seen.metadata.name, {"metadata": {"finalizers": ["e.org/hold"]}}
    )
    await api.create(api.machines(), machine("m"))
    bare = await api.client.get(MACHINES, "m", namespace=api.namespace)
    template = NodeTemplateSpec(spec=TemplateNodeSpec(taints=held.spec.taints))
    spec = msgspec.structs.replace(bare.spec, node_template=template)
    for subject, left in ((msgspec.structs.replace(bare, spec=spec), ["ours"]), (bare, [])):
        patch = node_patch(held, subject, None, admitted=True)
        assert patch is not None
        held = await api.client.patch(
            NODES, held.metadata.name, patch, patch_type=PatchType.STRATEGIC
        )
        assert [t.key for t in held.spec.taints] == left
        assert set(held.metadata.finalizers) == {"e.org/hold", NODE_FINALIZER}
    released = release_patch(held)
    assert released is not None
    after = await api.client.patch(
        NODES, held.metadata.name, released, patch_type=PatchType.STRATEGIC
    )
    assert after.metadata.finalizers == ("e.org/hold",)
    await api.client.patch(NODES, held.metadata.name, {"metadata": {"finalizers": None}})


# ---- a machine -----------------------------------------------------------------------------------


async def test_what_a_vm_was_brought_to_may_be_as_long_as_it_is_recorded(api: Bench) -> None:
    """Both records at their longest: an object's annotations may have 256 KiB together."""
    await api.create(api.machines(), machine("m"))
    seen = await api.client.get(MACHINES, "m", namespace=api.namespace)
    first, second = _as_long_as_recorded("a"), _as_long_as_recorded("b")
    for changes in (brought_to(seen, first), trying(seen, second)):
        patch = for_this_object(seen.metadata, {"metadata": {"annotations": dict(changes)}})
        seen = await api.client.patch(MACHINES, "m", patch, namespace=api.namespace)
    annotations = seen.metadata.annotations
    assert len(annotations[ANNOTATION_LAST_APPLIED_PROVIDER_SPEC]) == _LENGTH
    assert len(annotations[ANNOTATION_IN_FLIGHT_PROVIDER_SPECS]) == _LENGTH + len("[]")
    assert last_applied(seen) == first.spec


async def test_conditions_of_our_own_are_written_and_taken_back_for_the_version_seen(
    api: Bench,
) -> None:
    await api.create(api.machines(), machine("m"))
    seen = await api.client.get(MACHINES, "m", namespace=api.namespace)
    wanted = seen.status
    for kind in OwnCondition:
        wanted = with_own(wanted, kind, "False", "Because", f"of {kind} – ünd 'so on'", NOW)
    after = await _write_status(api, seen, wanted)
    assert after.status == wanted
    fewer = without_own(after.status, OwnCondition.INITIALIZED)
    with pytest.raises(Conflict):
        await _write_status(api, seen, fewer)
    after = await _write_status(api, after, fewer)
    assert find_own(after.status, OwnCondition.INITIALIZED) is None
    assert len(after.status.conditions) == len(OwnCondition) - 1


@pytest.mark.parametrize("repaired", [False, True])
async def test_a_machine_that_its_schema_refuses_by_now_is_let_go(
    api: Bench, *, repaired: bool
) -> None:
    """Servers since 1.30 let pass what was invalid before; older ones make us repair it first."""
    draft = finalizer(machine("m", maxEvictRetries="many", drainTimeout=7), MACHINE_FINALIZER)
    async with _schema_lifted(api, draft):
        await api.create(api.machines(), draft)
    await api.delete(api.machines("m"))
    held = await api.client.get(MACHINES, "m", namespace=api.namespace)
    assert held.metadata.faults
    change = without_finalizer(held.metadata, MACHINE_FINALIZER)
    assert change is not None
    again: JSONObject = {**draft, "metadata": {"name": "other"}}
    with pytest.raises(Invalid) as refused:
        await api.client.create(MACHINES, again, namespace=api.namespace)
    if repaired:
        change = with_repairs(held, change, refused.value)
        assert change["spec"] == {"drainTimeout": None, "maxEvictRetries": None}
    patch = for_this_version(held.metadata, change)
    try:
        await api.client.patch(MACHINES, "m", patch, namespace=api.namespace)
    except Invalid as refusal:
        assert not repaired
        mended = with_repairs(held, change, refusal)
        patch = for_this_version(held.metadata, mended)
        await api.client.patch(MACHINES, "m", patch, namespace=api.namespace)
    with pytest.raises(NotFound):
        await api.client.get(MACHINES, "m", namespace=api.namespace)


# ---- in between ----------------------------------------------------------------------------------


@asynccontextmanager
async def _schema_lifted(api: Bench, draft: Document) -> AsyncIterator[None]:
    """Let any machine pass; afterwards wait until ``draft`` would not any more."""
    before = await api.get(DEFINITION)
    await _define(api, _without_schema(before))
    try:
        await _until_taken(api, draft, 201)
        yield
    finally:
        await _define(api, before)
        await _until_taken(api, draft, 422)


def _without_schema(definition: Document) -> Document:
    lenient = deepcopy(definition)
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for version in lenient["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": anything}
    return lenient


async def _define(api: Bench, definition: Document) -> None:
    current = await api.get(DEFINITION)
    await api.put(DEFINITION, {**current, "spec": definition["spec"]})


async def _until_taken(api: Bench, draft: Document, status_code: int) -> None:
    clock, trial = SystemClock(), {**draft, "metadata": {"name": "trial"}}
    deadline = clock.monotonic() + 30.0
    while True:
        answer = await api.send("POST", api.machines(), trial, dryRun="All")
        if answer.status == status_code:
            return
        assert clock.monotonic() < deadline, answer.text
        await clock.sleep(0.1)


async def _node(api: Bench, *taints: Document) -> Node:
    """Make one; a real server's admission may add a taint of its own."""
    name = f"node-of-{api.namespace}"
    await api.create("/api/v1/nodes", node(name, taints=list(taints)))
    return await api.client.get(NODES, name)


async def _only_tainted(api: Bench, key: str) -> Node:
    made = await _node(api)
    taints = [{"key": key, "effect": "NoSchedule"}]
    return await api.client.patch(NODES, made.metadata.name, {"spec": {"taints": taints}})


async def _kubelet_reports(api: Bench, of: Node, ready: str) -> None:
    text = "2026-01-01T00:00:00Z"
    condition = {"type": "Ready", "status": ready, "reason": "Kubelet", "lastTransitionTime": text}
    path = f"/api/v1/nodes/{of.metadata.name}/status"
    await api.patch(path, {"status": {"conditions": [condition]}}, media=STRATEGIC)


async def _patch_status(api: Bench, of: Node, patch: JSONObject) -> Node:
    return await api.client.patch(
        NODES, of.metadata.name, patch, subresource="status", patch_type=PatchType.STRATEGIC
    )


async def _write_status(api: Bench, of: Machine, wanted: MachineStatus) -> Machine:
    patch = status.patch_of(of, wanted)
    assert patch is not None
    return await api.client.patch(
        MACHINES, of.metadata.name, patch, namespace=api.namespace, subresource="status"
    )


_LENGTH = LONGEST - len("[],")


def _as_long_as_recorded(letter: str) -> WantedSpec:
    """A provider spec whose record, alone or in a list, just fits."""
    room = _LENGTH - len('{"x":""}')
    wanted = WantedSpec.of({"x": letter * room})
    assert len(wanted.text) == _LENGTH
    return wanted
