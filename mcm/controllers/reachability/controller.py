"""Wiring of the reachability probe: what is asked of which cluster, and how often."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mcm.api.core import NODES
from mcm.api.machine import MACHINES
from mcm.controllers.context import ControllerContext
from mcm.controllers.reachability.probing import PROBE_NAME, Probe, ReachabilityProbe
from mcm.controllers.runtime import Controller

NAME = "machinesafetyapiserver"


def build(
    ctx: ControllerContext, *, recovered: Callable[[], None]
) -> tuple[ReachabilityProbe, Controller]:
    """Make the probe, and the controller that keeps it asking; nothing runs yet.

    ``recovered`` is called each time all clusters are reachable again.
    """
    probe = ReachabilityProbe(
        _probes(ctx),
        mirrors_troubled=lambda: _mirrors_troubled(ctx),
        recovered=recovered,
        timeout=ctx.options.apiserver_statuscheck_timeout.total_seconds(),
        period=ctx.options.apiserver_statuscheck_period.total_seconds(),
        led_since=ctx.led_since,
        clock=ctx.clock,
        registry=ctx.registry,
    )
    queue = ctx.queue(NAME)
    queue.add("api-servers")
    return probe, ctx.controller(NAME, queue, probe.reconcile, workers=1)


def _probes(ctx: ControllerContext) -> Mapping[str, Probe]:
    probes: dict[str, Probe] = {
        "control": lambda: ctx.control.get(MACHINES, PROBE_NAME, namespace=ctx.namespace)
    }
    target = ctx.target
    if target is not None:
        probes["target"] = lambda: target.get(NODES, PROBE_NAME)
    return probes


def _mirrors_troubled(ctx: ControllerContext) -> Mapping[str, str]:
    problems = dict(ctx.control_informers.problems())
    if ctx.target_informers is not None:
        problems.update(ctx.target_informers.problems())
    return problems
