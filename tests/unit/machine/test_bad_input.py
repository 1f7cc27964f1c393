"""Whatever stands in a Machine or its class: it says what is wrong and where, holds nobody else up,
and can be deleted. The API server here checks nothing, as one with older CRDs may."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import pytest
from msgspec import inspect

from mcm.api.core import NODES
from mcm.api.machine import MACHINE_CLASSES, MACHINES, Machine, MachineClass
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_NOT_MANAGED_BY_MCM
from mcm.api.nulls import is_opaque
from mcm.events import CORE_EVENTS, EVENTS
from tests.unit.machine.bench import NAMESPACE, Bench, bench, on_bench

Path: TypeAlias = tuple[str, ...]
WRONG: dict[str, object] = {
    "number": 7,
    "text": "☃ snow",
    "truth": True,
    "list": [{"x": [1]}],
    "object": {"x": {"y": 1}},
}
DEEP: object = 1
for _ in range(60):
    DEEP = {"deeper": DEEP}


def places(kind: inspect.Type, path: Path = ()) -> Iterator[tuple[Path, inspect.Type]]:
    """Every field of a type, and of the types of its fields; "0" is an item, "k" a key of a map."""
    for option in kind.types if isinstance(kind, inspect.UnionType) else (kind,):
        if path:
            yield path, option
        if isinstance(option, inspect.StructType):
            for field in option.fields:
                yield from places(field.type, (*path, field.encode_name))
        elif isinstance(option, inspect.VarTupleType):
            yield from places(option.item_type, (*path, "0"))
        elif isinstance(option, inspect.DictType):
            yield from places(option.value_type, (*path, "k"))


def fits(value: object, kind: inspect.Type) -> bool:
    options = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    fitting = {
        inspect.StrType: str,
        inspect.IntType: int,
        inspect.BoolType: bool,
        inspect.StructType: dict,
        inspect.DictType: dict,
        inspect.VarTupleType: list,
    }
    return any(is_opaque(option) or type(value) is fitting.get(type(option)) for option in options)


def placed(path: Path, value: object) -> JSONObject:
    """An object that has ``value`` at ``path`` and no more than leads there."""
    for name in reversed(path):
        value = [value] if name == "0" else {name: value}
    assert isinstance(value, dict)
    return value


def merged(one: JSONObject, other: JSONObject) -> JSONObject:
    result = dict(one)
    for key, value in other.items():
        known = result.get(key)
        both = isinstance(known, dict) and isinstance(value, dict)
        result[key] = merged(known, value) if both else value  # type: ignore[arg-type]
    return result


def cases(kind: type, parts: Path) -> list[tuple[str, Path, object]]:
    by_path: dict[Path, list[inspect.Type]] = {}
    for path, option in places(inspect.type_info(kind)):
        by_path.setdefault(path, []).append(option)
    found = []
    for path, options in by_path.items():
        if path[0] not in parts:
            continue
        for name, value in (*WRONG.items(), ("deep", DEEP)):
            if not any(fits(value, option) for option in options):
                found.append((f"{'.'.join(path)} is {name}", path, value))
    return found


OF_A_MACHINE = cases(Machine, ("spec", "status"))
OF_A_CLASS = cases(
    MachineClass, ("nodeTemplate", "credentialsSecretRef", "secretRef", "providerSpec", "provider")
)


def told(b: Bench, name: str) -> str:
    """Everything that is said of an object: on it and in its events."""
    texts = []
    for event in (*b.objects(EVENTS), *b.objects(CORE_EVENTS)):
        about = event.get("regarding") or event["involvedObject"]
        assert isinstance(about, dict)
        if about["name"] == name:
            texts.append(str(event.get("note") or event["message"]))
    for machine in b.objects(MACHINES):
        metadata, status = machine["metadata"], machine.get("status")
        assert isinstance(metadata, dict)
        if metadata["name"] == name and isinstance(status, dict):
            texts.append(str(status.get("lastOperation")))
    return "; ".join(texts)


def spelled(path: Path) -> str:
    """The path as it is told, up to the first item or key."""
    known = []
    for name in path:
        if name in ("0", "k"):
            break
        known.append(name)
    return ".".join(known)


async def make_raw(b: Bench, name: str, body: JSONObject) -> None:
    base: JSONObject = {
        "metadata": {"name": name},
        "spec": {"class": {"kind": "MachineClass", "name": "c"}},
    }
    await b.client.create(MACHINES, merged(base, body), namespace=NAMESPACE)
    if "status" in body:
        await b.client.patch(MACHINES, name, body, namespace=NAMESPACE, subresource="status")


def test_the_fields_are_all_there() -> None:
    assert len(OF_A_MACHINE) > 200
    assert len(OF_A_CLASS) > 40


@on_bench
async def test_a_field_of_the_wrong_type_is_named_and_holds_nobody_up() -> None:
    async with bench(lenient=True, started=False) as b:
        await b.make_class()
        paths = {f"bad-{n}": case for n, case in enumerate(OF_A_MACHINE)}
        for name, (_, path, value) in paths.items():
            await make_raw(b, name, placed(path, value))
        await b.start()
        await b.running("good")
        await b.settle(30)
        silent = [
            (case, told(b, name))
            for name, (case, path, _) in paths.items()
            if spelled(path) not in told(b, name)
        ]
        assert silent == []
        # A status is ours to write: what is said there heals it, and the machine is made.
        assert "spec" not in {paths[name][1][0] for name in b.driver.vms if name != "good"}
        for name in paths:
            await b.client.delete(MACHINES, name, namespace=NAMESPACE)
        await b.settle(30)
        left = [str(m["metadata"]["name"]) for m in b.objects(MACHINES)]  # type: ignore[index]
        assert [paths[name][0] for name in left if name != "good"] == []
        assert (await b.machine("good")).phase == "Running"


@on_bench
async def test_a_machine_with_a_vm_whose_object_was_spoilt_can_be_deleted() -> None:
    """All but what names its VM: that is looked after below."""
    spoilt = [
        c for c in OF_A_MACHINE if c[1][:2] not in (("spec", "class"), ("spec", "providerID"))
    ]
    spoilt = [c for c in spoilt if c[1] != ("spec",)][::5]
    async with bench(lenient=True) as b:
        await b.make_class()
        for n, (_, path, value) in enumerate(spoilt):
            await b.running(f"m-{n}")
            patch = placed(path, value)
            sub = "status" if path[0] == "status" else ""
            await b.client.patch(MACHINES, f"m-{n}", patch, namespace=NAMESPACE, subresource=sub)
        await b.settle(5)
        assert len(b.driver.vms) == len(spoilt)
        for n in range(len(spoilt)):
            await b.delete_machine(f"m-{n}")
        await b.settle(60)
        assert b.objects(MACHINES) == []
        assert b.driver.vms == {}
        assert b.objects(NODES) == []


@on_bench
async def test_a_field_of_a_class_of_the_wrong_type_is_named_on_its_machines() -> None:
    async with bench(lenient=True) as b:
        await b.make_class()
        for n, (_, path, value) in enumerate(OF_A_CLASS):
            body = merged({"metadata": {"name": f"c-{n}"}, "providerSpec": {}}, placed(path, value))
            await b.client.create(MACHINE_CLASSES, body, namespace=NAMESPACE)
            await b.make_machine(f"m-{n}", class_=f"c-{n}")
        await b.running("good")
        await b.settle(30)
        silent = [
            (case, told(b, f"m-{n}"))
            for n, (case, path, _) in enumerate(OF_A_CLASS)
            if spelled(path) not in told(b, f"m-{n}")
        ]
        assert silent == []
        assert set(b.driver.vms) == {"good"}
        for n in range(len(OF_A_CLASS)):
            await b.delete_machine(f"m-{n}")
            await b.client.delete(MACHINE_CLASSES, f"c-{n}", namespace=NAMESPACE)
        await b.settle(90)
        assert [m["metadata"]["name"] for m in b.objects(MACHINES)] == ["good"]  # type: ignore[index]
        assert [c["metadata"]["name"] for c in b.objects(MACHINE_CLASSES)] == ["c"]  # type: ignore[index]


SENSELESS: list[tuple[str, JSONObject]] = [
    ("spec.drainTimeout", {"spec": {"drainTimeout": "abc"}}),
    ("spec.healthTimeout", {"spec": {"healthTimeout": "-1h"}}),
    ("spec.creationTimeout", {"spec": {"creationTimeout": "9999999999h"}}),
    ("spec.inPlaceUpdateTimeout", {"spec": {"inPlaceUpdateTimeout": "9" * 10_000}}),
    ("spec.machinePreserveTimeout", {"spec": {"machinePreserveTimeout": "∞"}}),
    ("spec.maxEvictRetries", {"spec": {"maxEvictRetries": -1}}),
    ("spec.class.name", {"spec": {"class": {"name": "x" * 300}}}),
    ("spec.class.name", {"spec": {"class": {"name": "../secrets"}}}),
    ("spec.class.kind", {"spec": {"class": {"kind": "Ångström"}}}),
]


@on_bench
async def test_what_the_schema_accepts_and_makes_no_sense_is_named() -> None:
    async with bench() as b:
        await b.make_class()
        for n, (_, body) in enumerate(SENSELESS):
            await make_raw(b, f"m-{n}", body)
        await b.running("good")
        await b.settle(30)
        for n, (field, _) in enumerate(SENSELESS):
            assert field in told(b, f"m-{n}")
            await b.delete_machine(f"m-{n}")
        await b.settle(5)
        assert [m["metadata"]["name"] for m in b.objects(MACHINES)] == ["good"]  # type: ignore[index]
        assert set(b.driver.vms) == {"good"}


@on_bench
async def test_a_huge_status_and_a_huge_provider_id_keep_nobody_from_being_deleted() -> None:
    conditions = [{"type": f"T{n}", "status": "Maybe ☃"} for n in range(1000)]
    async with bench() as b:
        await b.make_class()
        await b.running()
        await b.client.patch(
            MACHINES, "m", {"status": {"conditions": conditions}}, namespace=NAMESPACE,
            subresource="status",
        )  # fmt: skip
        patch: JSONObject = {"spec": {"providerID": "p" * 10_000}}
        await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
        await b.settle(10)
        await b.delete_machine()
        await b.until_gone(within=30)
        assert not b.driver.vms


@on_bench
async def test_a_machine_read_in_part_stops_neither_collection_nor_the_marking_of_nodes() -> None:
    async with bench(lenient=True) as b:
        await b.make_class()
        await b.running()
        labels: JSONObject = {"spec": {"nodeTemplate": {"metadata": {"labels": {"a": 1}}}}}
        await b.client.patch(MACHINES, "m", labels, namespace=NAMESPACE)
        b.driver.vms["lost"] = "cloud:///lost"
        await b.client.create(NODES, {"metadata": {"name": "stranger"}})
        await b.settle(4000)
        assert set(b.driver.vms) == {"m"}
        stranger = await b.client.get(NODES, "stranger")
        assert ANNOTATION_NOT_MANAGED_BY_MCM in stranger.metadata.annotations
        assert (await b.machine()).phase == "Running"


@pytest.mark.parametrize("provider_id", [{"x": 1}, 7])
def test_a_machine_whose_provider_id_cannot_be_read_keeps_its_vm(provider_id: object) -> None:
    @on_bench
    async def main() -> None:
        async with bench(lenient=True) as b:
            await b.make_class()
            await b.running()
            await b.crash()
            patch: JSONObject = {"spec": {"providerID": provider_id}}
            await b.client.patch(MACHINES, "m", patch, namespace=NAMESPACE)
            await b.start()
            await b.settle(4000)
            assert set(b.driver.vms) == {"m"}
            await b.delete_machine()
            await b.until_gone(within=30)
            assert not b.driver.vms

    main()
