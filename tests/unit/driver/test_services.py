"""What a provider brings to run beside its driver, and who is asked for it."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from prometheus_client import CollectorRegistry

from mcm.client.client import Client
from mcm.client.errors import ConfigurationError
from mcm.clock import SystemClock
from mcm.driver import (
    CreateMachineRequest,
    CreateMachineResponse,
    DeleteMachineRequest,
    DeleteMachineResponse,
    Driver,
    ProviderContext,
    Service,
    UnsupportedDriver,
    services_of,
)
from mcm.manager import Manager
from mcm.options import Options, ProviderChoice
from mcm.providers.simulated import provider as simulated
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.loopback import LoopbackTransport

CLOCK = SystemClock()


class PlainDriver(UnsupportedDriver):
    """The least that a provider must do."""

    async def create_machine(self, request: CreateMachineRequest) -> CreateMachineResponse:
        return CreateMachineResponse("plain:///vm", "vm")

    async def delete_machine(self, request: DeleteMachineRequest) -> DeleteMachineResponse:
        return DeleteMachineResponse()


def transport() -> LoopbackTransport:
    return LoopbackTransport(ApiServer(clock=CLOCK, random=random.Random(1)))


def context(*, target: bool = True, simulate_cloud: bool = False) -> ProviderContext:
    client = Client(transport(), clock=CLOCK, user_agent="test")
    return ProviderContext(
        control=client,
        target=client if target else None,
        namespace="default",
        clock=CLOCK,
        random=random.Random(1),
        simulate_cloud=simulate_cloud,
    )


def test_a_driver_that_brings_nothing_has_no_services() -> None:
    assert services_of(PlainDriver()) == {}


def test_services_are_taken_by_name() -> None:
    async def poll() -> None: ...

    class Polling(PlainDriver):
        def services(self) -> Mapping[str, Service]:
            return {"poll": poll}

    assert services_of(Polling()) == {"poll": poll}


@pytest.mark.parametrize(("asked", "names"), [(False, []), (True, ["cloud"])])
def test_the_simulated_cloud_is_a_service_when_asked_for(asked: bool, names: list[str]) -> None:
    driver = simulated(context(simulate_cloud=asked))
    assert list(services_of(driver)) == names


def test_the_simulated_cloud_needs_a_cluster_to_join() -> None:
    with pytest.raises(ConfigurationError, match="--simulate-cloud: needs a target cluster"):
        simulated(context(target=False, simulate_cloud=True))


def test_a_provider_without_a_cloud_of_its_own_refuses_to_simulate_one() -> None:
    def provider(context: ProviderContext) -> Driver:
        return PlainDriver()

    with pytest.raises(ConfigurationError, match="--simulate-cloud: the provider 'plain' brings"):
        Manager(
            Options(provider=ProviderChoice("plain", simulate_cloud=True)),
            control=transport(),
            target=transport(),
            provider=provider,
            clock=CLOCK,
            randomness=random.Random(1),
            registry=CollectorRegistry(),
            identity="me",
        )
