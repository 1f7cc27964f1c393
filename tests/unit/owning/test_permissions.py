"""Sets and deployments do nothing that the chart's roles do not allow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from mcm.access import purpose
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINE_SETS, MACHINES
from mcm.api.meta import JSONObject
from mcm.client.requests import Call
from mcm.client.transport import Response
from mcm.controllers import deployment, machineset
from mcm.controllers.selection import Group
from tests.unit.machineset.cluster import Api, Cluster, Running, play
from tests.unit.machineset.objects import LABELS, SPEC

R = TypeVar("R")


def allowed() -> set[tuple[str, str]]:
    """Return every (verb, resource) that is granted to controllers of sets alone."""
    return {
        (access.verb, access.resource)
        for name in ("control", "target")
        for rule in purpose(name).rules
        if rule.only_for in ("", Group.SETS)
        for access in rule.accesses()
    }


def verbs_of(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """Note what anybody but the test itself asks of the server from now on."""
    asked: set[tuple[str, str]] = set()
    perform = Api.perform

    async def noting(self: Api, call: Call, read: Callable[[Response], R]) -> R:
        task = asyncio.current_task()
        if call.resource is not None and task is not None and task.get_name() != "test":
            thing = "/".join(filter(None, (call.resource.plural, call.subresource)))
            asked.add((call.verb.lower(), thing))
        return await perform(self, call, read)

    monkeypatch.setattr(Api, "perform", noting)
    return asked


def named(name: str, spec: JSONObject, **metadata: object) -> JSONObject:
    return {"metadata": {"name": name, "labels": LABELS, **metadata}, "spec": spec}


def test_adopting_scaling_rolling_and_deleting_stay_within_the_roles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = verbs_of(monkeypatch)
    template: JSONObject = {"metadata": {"labels": LABELS}, "spec": SPEC}
    set_spec: JSONObject = {
        "replicas": 1,
        "selector": {"matchLabels": LABELS},
        "template": template,
    }

    async def scenario() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.set_name("test")
        cluster = Cluster()
        builds = (*deployment.build(cluster.context), *machineset.build(cluster.context))
        async with Running(cluster, builds) as controllers:
            await cluster.create(MACHINES, named("stray", SPEC))
            await cluster.create(MACHINE_SETS, named("by-hand", set_spec))
            await controllers.settle()
            await cluster.create(MACHINE_DEPLOYMENTS, named("pool", {**set_spec, "replicas": 2}))
            await controllers.settle(60)
            owner = cluster.get(MACHINE_SETS, "by-hand").metadata.controller_ref()
            assert owner is not None and owner.name == "pool"
            assert cluster.get(MACHINES, "stray").metadata.controller_ref() is not None
            await cluster.patch(MACHINES, "stray", {"metadata": {"labels": {"name": "else"}}})
            await controllers.settle(60)
            newer = {**SPEC, "class": {"kind": "MachineClass", "name": "newer"}}
            change: JSONObject = {"spec": {"replicas": 3, "template": {"spec": newer}}}
            await cluster.patch(MACHINE_DEPLOYMENTS, "pool", change)
            await controllers.settle(60)
            assert len(cluster.all(MACHINE_SETS)) == 2
            await cluster.delete(MACHINE_DEPLOYMENTS, "pool")
            await controllers.settle(600)

    play(scenario)
    assert {("get", "machinesets"), ("get", "machinedeployments")} <= asked
    assert asked - allowed() == set()
