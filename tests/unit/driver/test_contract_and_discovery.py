from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import EntryPoint

import pytest

from mcm.api.machine import Machine, MachineClass
from mcm.api.meta import ObjectMeta
from mcm.client.errors import ConfigurationError
from mcm.driver import (
    Code,
    CreateMachineRequest,
    DeleteMachineRequest,
    DriverError,
    GetMachineStatusRequest,
    GetVolumeIDsRequest,
    InitializeMachineRequest,
    ListMachinesRequest,
    UnsupportedDriver,
    UpdateMachineRequest,
    load_provider,
    provider_names,
)

MACHINE = Machine(metadata=ObjectMeta(name="m", namespace="ns"))
CLASS = MachineClass(metadata=ObjectMeta(name="c", namespace="ns"))
SECRET = {"password": b"hunter2"}


@pytest.mark.parametrize(
    "request_",
    [
        CreateMachineRequest(MACHINE, CLASS, SECRET),
        InitializeMachineRequest(MACHINE, CLASS, SECRET),
        UpdateMachineRequest(MACHINE, CLASS, SECRET, provider_id="cloud:///m"),
        DeleteMachineRequest(MACHINE, CLASS, SECRET),
        GetMachineStatusRequest(MACHINE, CLASS, SECRET),
        ListMachinesRequest(CLASS, SECRET),
    ],
)
def test_no_request_shows_its_secret(request_: object) -> None:
    assert "hunter2" not in repr(request_)
    assert "password" not in repr(request_)


async def test_the_base_driver_implements_none_of_the_optional_verbs() -> None:
    driver = UnsupportedDriver()
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: driver.initialize_machine(InitializeMachineRequest(MACHINE, CLASS, SECRET)),
        lambda: driver.update_machine(
            UpdateMachineRequest(MACHINE, CLASS, SECRET, provider_id="cloud:///m")
        ),
        lambda: driver.get_machine_status(GetMachineStatusRequest(MACHINE, CLASS, SECRET)),
        lambda: driver.list_machines(ListMachinesRequest(CLASS, SECRET)),
        lambda: driver.get_volume_ids(GetVolumeIDsRequest(())),
    ]
    for call in calls:
        with pytest.raises(DriverError) as caught:
            await call()
        assert caught.value.code is Code.UNIMPLEMENTED


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name=name, value=value, group="mcm.providers")


def test_a_provider_is_found_by_its_entry_point() -> None:
    installed = [entry("here", "mcm.driver:UnsupportedDriver"), entry("other", "nowhere:f")]
    assert provider_names(installed) == ("here", "other")
    assert load_provider("here", installed) is UnsupportedDriver  # type: ignore[comparison-overlap]


@pytest.mark.parametrize(
    ("name", "installed", "words"),
    [
        ("missing", [entry("here", "mcm.driver:UnsupportedDriver")], "installed: here"),
        ("missing", [], "installed: none"),
        ("broken", [entry("broken", "mcm_no_such_module:create")], "cannot be loaded"),
        ("broken", [entry("broken", "mcm.driver:no_such_name")], "cannot be loaded"),
        ("odd", [entry("odd", "mcm.driver.discovery:ENTRY_POINT_GROUP")], "not a factory"),
        ("two", [entry("two", "a:f"), entry("two", "b:f")], "several packages"),
    ],
)
def test_a_provider_that_cannot_be_used_is_a_configuration_error(
    name: str, installed: list[EntryPoint], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words):
        load_provider(name, installed)
