"""How long a machine took to join, kept on it for people and dashboards."""

from __future__ import annotations

import logging
from datetime import timedelta

from mcm.api.durations import format_duration
from mcm.api.machine import Machine
from mcm.api.names import ANNOTATION_MACHINE_JOIN_DURATION
from mcm.client.errors import KubeError
from mcm.controllers.machine.ports import ControlCluster
from mcm.controllers.preconditions import for_this_object

logger = logging.getLogger(__name__)


async def record_join_duration(control: ControlCluster, machine: Machine) -> Machine:
    """Write it on a machine that has just joined; return the machine as it then is.

    A write of its own, as nothing else of the metadata changes then: with the status it would be
    dropped. A machine of a set has cost five writes by now, which is what one may: there the text
    of the last operation alone says it. Failing is no harm.
    """
    if machine.metadata.controller_ref() is not None:
        return machine
    took = control.now() - (machine.metadata.creation_timestamp or control.now())
    text = format_duration(timedelta(seconds=max(0, round(took.total_seconds()))))
    change = {"metadata": {"annotations": {ANNOTATION_MACHINE_JOIN_DURATION: text}}}
    try:
        return await control.patch(machine, for_this_object(machine.metadata, change))
    except KubeError as error:
        logger.warning(
            "the time to join is not on the machine",
            extra={"machine": machine.metadata.key, "cause": str(error)},
        )
        return control.current(machine) or machine
