"""The simulated cloud's driver keeps the contract, with every optional verb."""

from __future__ import annotations

import dataclasses
import random

import pytest

from mcm.api.machine import MachineClass
from mcm.api.meta import JSONObject, ObjectMeta
from mcm.conformance import DriverContract, Refusal, Rule, Subject
from mcm.driver import Code, Driver
from mcm.providers.simulated.driver import SimulatedDriver
from tests.unit.world.rig import Rig, on_rig

LATENCIES: JSONObject = {"createLatency": "2s", "deleteLatency": "1s"}
SECRET = {"token": b"open sesame, please"}


def class_named(name: str, **fields: object) -> MachineClass:
    meta = ObjectMeta(name=name, namespace="default")
    return MachineClass(metadata=meta, provider_spec={**LATENCIES, **fields})


def subject_with(**fields: object) -> Subject:
    return Subject(
        new_driver=_nowhere,
        machine_class=class_named("small", **fields),
        changed_class=class_named("small", tags={"vm": {"team": "blue"}}, **fields),
        secret=SECRET,
        refusals=[
            Refusal(
                when="a field is unknown",
                codes=frozenset({Code.INVALID_ARGUMENT}),
                machine_class=class_named("small", colour="red"),
            ),
            Refusal(
                when="the cloud says so",
                codes=frozenset({Code.RESOURCE_EXHAUSTED}),
                machine_class=class_named(
                    "small",
                    failures=[{"verb": "create", "code": "ResourceExhausted", "times": 9}],
                ),
            ),
        ],
        volumes={"vol-1": {"csi": {"driver": "ebs", "volumeHandle": "vol-1"}}},
    )


def _nowhere() -> Driver:
    raise AssertionError("the cloud is on a rig")


def on(rig: Rig, subject: Subject) -> Subject:
    """Return ``subject`` with drivers whose cloud is ``rig``'s API server."""

    def new_driver() -> Driver:
        client = rig.new_client("mcm")
        return SimulatedDriver(
            client, namespace="default", clock=rig.clock, randomness=random.Random(1)
        )

    return dataclasses.replace(subject, new_driver=new_driver, clock=rig.clock)


class TestContract(DriverContract):
    fields: JSONObject = {}

    @pytest.fixture
    def subject(self) -> Subject:
        return subject_with(**self.fields)

    def perform(self, rule: Rule, subject: Subject) -> None:
        if rule.name == "no-call-blocks-the-loop":
            pytest.skip("virtual time cannot stand still, and the driver waits by its client alone")
        on_rig(lambda rig: rule.check_on(on(rig, subject)), with_world=False)


class TestContractWithInitialization(TestContract):
    fields: JSONObject = {"needsInitialization": True}
