"""Classes of a kind there was before MachineClass are replaced; who uses them does not notice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import cast

import msgspec
import pytest

from mcm.api.core import SecretReference
from mcm.api.machine import (
    GROUP,
    MACHINE_CLASSES,
    MACHINE_DEPLOYMENTS,
    MACHINE_SETS,
    MACHINES,
    VERSION,
    ClassSpec,
    Machine,
)
from mcm.api.meta import JSONObject, Resource, T
from mcm.client.errors import Conflict, RequestTimeout
from mcm.client.transport import Request
from mcm.controllers.machine.class_migration.older_class import OlderClass, older_class_of
from mcm.controllers.machine.class_migration.references import References
from mcm.controllers.machine.flow import Step, steps_of
from mcm.driver import (
    Code,
    Driver,
    GenerateMachineClassForMigrationRequest,
    GenerateMachineClassForMigrationResponse,
    ProviderContext,
    UnsupportedDriver,
)
from mcm.informers import Store
from mcm.providers import simulated
from mcm.sandbox import samples
from mcm.sandbox.cluster import create_all
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.unit.machine.bench import NAMESPACE, Bench, ScriptedDriver, bench, on_bench
from tests.unit.machine.objects import machine
from tests.unit.machine.test_error_codes import SLOWLY, SOON, SPELLED

OLDER = OlderClass(NAMESPACE, "AWSMachineClass", "c")
AWS = OLDER.resource
CLASS: JSONObject = {"kind": "AWSMachineClass", "name": "c"}
FINALIZER = "machine.sapcloud.io/machine-controller-manager"

GUIDE = {Code.OK: True, Code.UNIMPLEMENTED: False, Code.INTERNAL: True}
"""The rows of the guide for this method: code, and whether "Auto Retry Required"."""


def crd(resource: Resource[T]) -> JSONObject:
    schema: JSONObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.name},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.kind.lower(),
            },
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


def older_class(name: str = "c") -> JSONObject:
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": "AWSMachineClass",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "labels": {"team": "a"},
            "annotations": {"note": "n"},
            "finalizers": [FINALIZER],
        },
        "spec": {"machineType": "m5.large", "secretRef": {"name": "s", "namespace": NAMESPACE}},
    }


def converted(
    request: GenerateMachineClassForMigrationRequest, spec: JSONObject | None = None
) -> GenerateMachineClassForMigrationResponse:
    """Fill in the new class, as the provider's author would."""
    old = request.provider_specific_machine_class["spec"]
    assert isinstance(old, dict)
    filled = msgspec.structs.replace(
        request.machine_class,
        provider="AWS",
        provider_spec=spec if spec is not None else {"size": old["machineType"]},
        secret_ref=SecretReference(**old["secretRef"]),
    )
    return GenerateMachineClassForMigrationResponse(filled)


class MigratingDriver(ScriptedDriver):
    """A cloud whose provider had a class kind of its own."""

    asked: ClassSpec | None = None

    async def generate_machine_class_for_migration(
        self, request: GenerateMachineClassForMigrationRequest
    ) -> GenerateMachineClassForMigrationResponse:
        await self._call("migrate", request.class_spec.name)
        self.asked = request.class_spec
        return converted(request)


@asynccontextmanager
async def older_bench() -> AsyncIterator[Bench]:
    async with bench(started=False) as b:
        b.driver = MigratingDriver(b.clock)
        await create_all(b.server, [crd(AWS), older_class()])
        await b.make_secret()
        await b.start()
        yield b


async def migrate_everybody(b: Bench) -> None:
    template: JSONObject = {"metadata": {"labels": {"x": "y"}}, "spec": {"class": CLASS}}
    selector: JSONObject = {"matchLabels": {"x": "y"}}
    body: JSONObject = {
        "metadata": {"name": "d"},
        "spec": {"replicas": 0, "selector": selector, "template": template},
    }
    await b.client.create(MACHINE_DEPLOYMENTS, body, namespace=NAMESPACE)
    await b.client.create(
        MACHINE_SETS,
        {**body, "metadata": {"name": "s"}, "spec": {**body["spec"], "machineClass": CLASS}},  # type: ignore[dict-item]
        namespace=NAMESPACE,
    )
    for name in ("m", "n"):
        await b.make_machine(name, spec={"class": CLASS})


async def look_that_all_is_led_over(b: Bench) -> None:
    for name in ("m", "n"):
        await b.until_phase("Pending", name, within=120)
        subject = await b.machine(name)
        assert subject.spec.class_.kind == "MachineClass"
        assert not subject.status.conditions
    deployment = await b.client.get(MACHINE_DEPLOYMENTS, "d", namespace=NAMESPACE)
    machine_set = await b.client.get(MACHINE_SETS, "s", namespace=NAMESPACE)
    assert deployment.spec.template.spec["class"] == {"kind": "MachineClass", "name": "c"}
    assert machine_set.spec.template.spec["class"] == {"kind": "MachineClass", "name": "c"}
    assert machine_set.spec.machine_class == ClassSpec(kind="MachineClass", name="c")
    old = await b.client.get(AWS, "c", namespace=NAMESPACE)
    assert old.metadata.annotations["machine.sapcloud.io/migrated"] == (
        "machine-controller-AWSMachineClass"
    )
    assert not old.metadata.finalizers
    new = await b.client.get(MACHINE_CLASSES, "c", namespace=NAMESPACE)
    assert (new.provider_spec, new.provider) == ({"size": "m5.large"}, "AWS")
    assert (new.metadata.labels, new.metadata.annotations) == ({"team": "a"}, {"note": "n"})
    assert b.driver.made == 2


@on_bench
async def test_an_older_class_is_replaced_and_all_who_name_it_are_led_over() -> None:
    async with older_bench() as b:
        await migrate_everybody(b)
        await look_that_all_is_led_over(b)
        assert b.driver.count("migrate") == 1
        assert isinstance(b.driver, MigratingDriver)
        assert b.driver.asked == OLDER.class_spec


@pytest.mark.parametrize("arrived", [False, True])
@pytest.mark.parametrize("number", range(1, 12))
def test_a_migration_survives_the_end_of_the_process_at_any_write(
    number: int, *, arrived: bool
) -> None:
    @on_bench
    async def main() -> None:
        async with older_bench() as b:
            seen, lost = 0, False

            def count(request: Request) -> None:
                nonlocal seen, lost
                seen += 1
                lost = seen == number
                if lost and not arrived:
                    raise RequestTimeout("lost on its way")

            b.transport.before_write = count
            b.faults.lose_answers(where=lambda r: lost and r.method != "GET", times=1)
            await migrate_everybody(b)
            await b.until(lambda: reached(lambda: seen >= number), within=60)
            await b.crash()
            b.transport.before_write = lambda _: None
            await b.start()
            await look_that_all_is_led_over(b)

    main()


async def reached(condition: Callable[[], bool]) -> bool:
    return condition()


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(
            code,
            id=f"GenerateMachineClassForMigration-{code.value}-{SPELLED[code]}"
            + ("" if code in GUIDE else "-unlisted"),
        )
        for code in Code
    ],
)
def test_generate_machine_class_for_migration(code: Code) -> None:
    @on_bench
    async def main() -> None:
        async with older_bench() as b:
            if code is Code.OK:
                await b.make_machine(spec={"class": CLASS})
                await b.until_phase("Pending", within=2)
                return
            b.driver.fail("migrate", code)
            await b.make_machine(spec={"class": CLASS})
            await b.until_phase("CrashLoopBackOff", within=2)
            subject = await b.machine()
            (shown,) = subject.status.conditions
            assert (shown.type, shown.status) == ("MachineClassMigrated", "False")
            assert shown.reason == code.text
            last = subject.status.last_operation
            assert (last.type, last.state) == ("Create", "Failed")
            assert f"code = [{code.text}]" in last.description
            soonest, latest = SOON if code.transient or GUIDE.get(code) else SLOWLY
            assert soonest <= await b.until_phase("Pending", within=latest)
            assert not (await b.machine()).status.conditions

    main()


@on_bench
async def test_who_was_led_elsewhere_meanwhile_is_left_alone() -> None:
    async with bench(started=False) as b:
        await b.make_machine("m", spec={"class": CLASS})
        machines: Store[Machine] = Store()
        machines.observe(await b.machine("m"))
        theirs: JSONObject = {"spec": {"class": {"kind": "AWSMachineClass", "name": "another"}}}
        await b.client.patch(MACHINES, "m", theirs, namespace=NAMESPACE)
        references = References(
            machines=machines, sets=Store(), deployments=Store(), writer=b.client
        )
        with pytest.raises(Conflict):
            await references.lead_machines_over(OlderClass(NAMESPACE, "AWSMachineClass", "c"))
        spec = (await b.machine("m")).spec
        assert spec.class_ == ClassSpec(kind="AWSMachineClass", name="another")


@on_bench
async def test_a_machine_that_runs_says_so_too_and_runs_on() -> None:
    async with older_bench() as b:
        await b.make_class("other", with_secret=False)
        await b.make_machine(class_="other")
        await b.until_phase("Pending")
        await b.join()
        await b.until_phase("Running")
        b.driver.fail("migrate", Code.UNIMPLEMENTED)
        patch: JSONObject = {"spec": {"class": CLASS}}
        await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
        await b.settle(2)
        subject = await b.machine()
        assert subject.phase == "Running"
        assert any(c.type == "MachineClassMigrated" for c in subject.status.conditions)
        await b.settle(40)
        subject = await b.machine()
        assert subject.spec.class_.kind == "MachineClass"
        assert {c.type for c in subject.status.conditions} == {"Ready"}


@on_bench
async def test_a_machine_that_goes_has_its_class_migrated_to_delete_its_vm() -> None:
    async with older_bench() as b:
        b.driver.vms["m"] = "cloud:///m-1"
        body: JSONObject = {
            "metadata": {"name": "m", "finalizers": [FINALIZER]},
            "spec": {"class": CLASS, "providerID": "cloud:///m-1"},
        }
        await b.client.create(MACHINES, body, namespace=NAMESPACE)
        await b.delete_machine()
        await b.until_gone(within=20)
        assert not b.driver.vms


@on_bench
async def test_an_older_class_that_is_not_there_is_named() -> None:
    async with older_bench() as b:
        await b.make_machine(spec={"class": {"kind": "AWSMachineClass", "name": "lost"}})
        await b.until_phase("CrashLoopBackOff", within=2)
        text = (await b.machine()).status.last_operation.description
        assert "AWSMachineClass default/lost does not exist: name a MachineClass" in text
        await create_all(b.server, [older_class("lost")])
        await b.until_phase("Pending", within=31)


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        (ClassSpec(kind="MachineClass", name="c"), None),
        (ClassSpec(kind="", name="c"), None),
        (ClassSpec(kind="AWSMachineClass", name=""), None),
        (ClassSpec(kind="Ångström", name="c"), None),
        (ClassSpec(kind="AWSMachineClass", name="c", api_group="apps"), None),
        (ClassSpec(kind="Aws", name="c", api_group=GROUP), OlderClass("ns", "Aws", "c")),
        (ClassSpec(kind="Blueprint", name="c"), OlderClass("ns", "Blueprint", "c")),
    ],
)
def test_which_classes_are_older_ones(named: ClassSpec, expected: OlderClass | None) -> None:
    subject = machine(class_=named)
    assert older_class_of(subject) == expected
    assert (Step.MIGRATE_CLASS in steps_of(subject, has_target=True)) is (expected is not None)


class OnlyMigrating(UnsupportedDriver):
    """The simulated cloud's driver, with a verb more."""

    def __init__(self, inner: Driver) -> None:
        for verb in ("create_machine", "delete_machine", "get_machine_status", "list_machines"):
            setattr(self, verb, getattr(inner, verb))

    async def generate_machine_class_for_migration(
        self, request: GenerateMachineClassForMigrationRequest
    ) -> GenerateMachineClassForMigrationResponse:
        return converted(request, {"createLatency": "1s"})


def test_a_fleet_is_led_over_without_the_replacement_of_a_machine() -> None:
    async def main() -> None:
        def provider(context: ProviderContext) -> Driver:
            return cast("Driver", OnlyMigrating(simulated.provider(context)))

        async with Simulation(seed=5, provider=provider) as sim:
            await sim.apply([crd(AWS)])
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=60)
            before = {m["metadata"]["uid"] for m in sim.objects(MACHINES)}  # type: ignore[index]
            old = older_class("small")
            old["spec"]["secretRef"]["name"] = "sample-secret"  # type: ignore[index]
            await sim.apply([old])
            patch: JSONObject = {
                "spec": {"template": {"spec": {"class": {"kind": "AWSMachineClass"}}}}
            }
            await sim.client.patch(MACHINE_DEPLOYMENTS, "sample", patch, namespace="default")
            await sim.pass_time(120)
            machines = sim.objects(MACHINES)
            assert {m["metadata"]["uid"] for m in machines} == before  # type: ignore[index]
            assert {m["spec"]["class"]["kind"] for m in machines} == {"MachineClass"}  # type: ignore[index]
            (deployment,) = sim.objects(MACHINE_DEPLOYMENTS)
            assert deployment["spec"]["template"]["spec"]["class"]["kind"] == "MachineClass"  # type: ignore[index]
            assert len(sim.objects(MACHINE_SETS)) == 1
            assert sim.running() == 3

    run_virtual(main)
