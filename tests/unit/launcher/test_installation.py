"""What a cluster lacks, and its creation, against the sandbox's API server in this process."""

from __future__ import annotations

import copy
import random
from typing import Any, Final

import pytest

from mcm.api.crds import crd_manifests
from mcm.api.meta import JSONObject, Resource
from mcm.client.client import Client
from mcm.client.errors import ConfigurationError
from mcm.client.transport import Request, Response, Transport
from mcm.clock import SystemClock
from mcm.launcher.installation import DEFINITIONS, NAMESPACES, Plan, install, planned
from mcm.options import IN_CLUSTER, Clusters, Options, ProviderChoice
from mcm.prerequisites.remedy import complaint
from mcm.prerequisites.served_kinds import (
    MACHINE_KINDS,
    ServedKind,
    in_words,
    not_served,
    of_definitions,
)
from mcm.providers.simulated import virtual_machine
from mcm.sandbox.apiserver.server import ApiServer
from mcm.sandbox.loopback import LoopbackTransport

CLOCK: Final = SystemClock()
ALL: Final = (
    "namespace/blue",
    "customresourcedefinition/machineclasses.machine.sapcloud.io",
    "customresourcedefinition/machinedeployments.machine.sapcloud.io",
    "customresourcedefinition/machines.machine.sapcloud.io",
    "customresourcedefinition/machinesets.machine.sapcloud.io",
    "customresourcedefinition/virtualmachines.simulation.machine.sapcloud.io",
)


@pytest.fixture
def client() -> Client:
    server = ApiServer(clock=CLOCK, random=random.Random(0))
    return Client(LoopbackTransport(server), clock=CLOCK)


async def plan_of(client: Client, namespace: str = "blue") -> Plan:
    return await planned(client, [virtual_machine.crd_manifest()], namespace)


async def test_an_empty_cluster_lacks_everything_and_has_it_after_the_installation(
    client: Client,
) -> None:
    plan = await plan_of(client)
    assert sorted(plan.names) == sorted(ALL)
    assert plan.names[0] == "namespace/blue"
    await install(client, plan, CLOCK)
    assert await plan_of(client) == Plan((), ())
    assert await not_served(client, MACHINE_KINDS) == ()


async def test_only_what_is_missing_is_created(client: Client) -> None:
    await client.create(DEFINITIONS, crd_manifests()[0])
    existing = await client.get(DEFINITIONS, crd_manifests()[0]["metadata"]["name"])  # type: ignore[index]
    plan = await plan_of(client, "default")
    assert len(plan.names) == 4
    await install(client, plan, CLOCK)
    assert await client.get(DEFINITIONS, existing.metadata.name) == existing


async def test_what_somebody_else_creates_meanwhile_is_theirs(client: Client) -> None:
    plan = await plan_of(client)
    await client.create(NAMESPACES, plan.missing[0])
    await install(client, plan, CLOCK)
    assert (await plan_of(client)).missing == ()


def changed(definition: JSONObject, *, version: str = "", description: str = "") -> JSONObject:
    other = copy.deepcopy(definition)
    (found,) = other["spec"]["versions"]  # type: ignore[index]
    if version:
        found["name"] = version
    if description:
        found["schema"]["openAPIV3Schema"]["description"] = description
    return other


async def test_a_definition_of_another_make_is_named_and_left_alone(client: Client) -> None:
    other = changed(crd_manifests()[0], description="somebody's own")
    made = await client.create(DEFINITIONS, other)
    plan = await plan_of(client)
    assert plan.differing == (made.metadata.name,)
    await install(client, plan, CLOCK)
    assert await client.get(DEFINITIONS, made.metadata.name) == made


async def test_a_definition_without_our_version_is_no_place_to_start(client: Client) -> None:
    made = await client.create(DEFINITIONS, changed(crd_manifests()[0], version="v1beta9"))
    with pytest.raises(ConfigurationError, match=r"defines, but does not serve machine.*v1alpha1"):
        await plan_of(client)
    assert await client.get(DEFINITIONS, made.metadata.name) == made


class _NotYet:
    """Carries requests to a server that has not begun to serve what was defined just now."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.slow = True

    async def request(self, request: Request) -> Response:
        if self.slow and request.path.startswith("/apis/machine.sapcloud.io"):
            return Response(404, {}, b"{}")
        return await self._transport.request(request)

    def __getattr__(self, name: str) -> object:
        return getattr(self._transport, name)


async def test_an_installation_that_was_interrupted_is_carried_on() -> None:
    server = ApiServer(clock=CLOCK, random=random.Random(0))
    transport: Any = _NotYet(LoopbackTransport(server))
    client = Client(transport, clock=CLOCK)
    name = str((await client.create(DEFINITIONS, crd_manifests()[0])).metadata.name)
    plan = await plan_of(client)
    assert f"customresourcedefinition/{name}" in plan.names
    transport.slow = False
    await install(client, plan, CLOCK)
    assert (await plan_of(client)).missing == ()


@pytest.mark.parametrize("what", ["namespace", "definition"])
async def test_nothing_is_begun_on_what_is_being_deleted(client: Client, what: str) -> None:
    await install(client, await plan_of(client), CLOCK)
    resource: Resource[Any] = NAMESPACES if what == "namespace" else DEFINITIONS
    name = "blue" if what == "namespace" else str(crd_manifests()[0]["metadata"]["name"])  # type: ignore[index]
    held: JSONObject = {"metadata": {"finalizers": ["example.org/held"]}}
    await client.patch(resource, name, held)
    await client.delete(resource, name)
    with pytest.raises(ConfigurationError, match=f"being deleted in the cluster: .*/{name};"):
        await plan_of(client)


def test_kinds_are_named_by_their_groups() -> None:
    virtual = of_definitions([virtual_machine.crd_manifest()])
    assert in_words([*MACHINE_KINDS, *virtual, ServedKind("", "v1", "nodes")]) == (
        "machines, machinesets, machinedeployments, machineclasses (machine.sapcloud.io/v1alpha1) "
        "and virtualmachines (simulation.machine.sapcloud.io/v1alpha1) and nodes (v1)"
    )


@pytest.mark.parametrize(
    ("options", "control", "command"),
    [
        (Options(), MACHINE_KINDS, "`mcm crds | kubectl apply -f -`"),
        (
            Options(clusters=Clusters(target_kubeconfig="my file")),
            MACHINE_KINDS[:1],
            "`mcm crds | kubectl --kubeconfig 'my file' apply -f -`",
        ),
        (
            Options(
                clusters=Clusters(control_kubeconfig=IN_CLUSTER), provider=ProviderChoice("other")
            ),
            (*MACHINE_KINDS, ServedKind("x", "v1", "y")),
            "`mcm crds --provider other | kubectl apply -f -`",
        ),
    ],
)
def test_one_command_mends_all(
    options: Options, control: tuple[ServedKind, ...], command: str
) -> None:
    said = complaint(options, control, ())
    assert command in said
    assert in_words(control) in said


def test_nothing_is_said_where_nothing_is_missing() -> None:
    assert complaint(Options(), (), ()) == ""
    assert "target cluster does not serve nodes" in complaint(
        Options(), (), (ServedKind("", "v1", "nodes"),)
    )
