"""Bringing a machine up to its set's template, as far as that needs no new machine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from mcm.api.machine import MACHINES, Machine, MachinePhase, MachineSet, MachineSpec
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_EFFECTIVE_CREATION_TIMEOUT
from mcm.api.templates import machine_spec_of
from mcm.client.errors import KubeError
from mcm.client.verbs import ObjectWriter
from mcm.controllers.fanout import patch_each
from mcm.controllers.machineset.machine_template import is_creation_timeout
from mcm.controllers.replicas.in_place_fields import (
    NODE_TEMPLATE,
    configuration_change,
    node_template_change,
)
from mcm.controllers.replicas.membership import is_terminating


async def sync_templates(
    writer: ObjectWriter, machine_set: MachineSet, machines: Iterable[Machine]
) -> Sequence[KubeError]:
    """Bring ``machines`` up to the template, one patch each at most; return the refusals."""
    template = machine_set.spec.template
    wanted, raw = machine_spec_of(template), template.spec.get(NODE_TEMPLATE)
    usual = _what_syncs(wanted)
    changes = (
        (m.metadata, sync_change(m, wanted, raw_node_template=raw))
        for m in machines
        if _what_syncs(m.spec) != usual or _has_override(m)
    )
    return await patch_each(writer, MACHINES, (pair for pair in changes if pair[1]))


def sync_change(machine: Machine, wanted: MachineSpec, *, raw_node_template: object) -> JSONObject:
    """Return the merge patch that brings ``machine`` up to its set's template; empty if it is.

    ``wanted`` is the template's spec, ``raw_node_template`` its node template as it was sent. A
    machine that failed or leaves keeps what it has, but for the kind of its class: without that,
    nobody could delete it.
    """
    wanted = _with_override(machine, wanted)
    if _what_syncs(machine.spec) == _what_syncs(wanted):
        return {}  # the usual case, and the cheap one
    spec: JSONObject = {}
    if machine.spec.class_.kind != wanted.class_.kind:
        spec["class"] = {"kind": wanted.class_.kind}
    if not (is_terminating(machine) or machine.phase == MachinePhase.FAILED):
        spec |= configuration_change(machine.spec, wanted)
        spec |= node_template_change(
            machine.spec.node_template, wanted.node_template, raw=raw_node_template
        )
    return {"spec": spec} if spec else {}


def _what_syncs(spec: MachineSpec) -> tuple[object, ...]:
    return (
        spec.class_.kind,
        spec.node_template,
        spec.drain_timeout,
        spec.health_timeout,
        spec.creation_timeout,
        spec.in_place_update_timeout,
        spec.machine_preserve_timeout,
        spec.disable_health_timeout,
        spec.max_evict_retries,
        spec.node_conditions,
    )


def _has_override(machine: Machine) -> bool:
    return ANNOTATION_EFFECTIVE_CREATION_TIMEOUT in machine.metadata.annotations


def _with_override(machine: Machine, wanted: MachineSpec) -> MachineSpec:
    """Leave a machine the creation timeout that its annotation gave it."""
    override = machine.metadata.annotations.get(ANNOTATION_EFFECTIVE_CREATION_TIMEOUT)
    if override is None or not is_creation_timeout(override):
        return wanted
    return msgspec.structs.replace(wanted, creation_timeout=override)
