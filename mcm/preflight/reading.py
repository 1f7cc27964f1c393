"""Reads everything that the checks look at: once, as far as the server lets us."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, final

import msgspec
import orjson

from mcm.access import OLD_CLASSES, Purpose, Rule, purpose
from mcm.access.rules import Access
from mcm.api.crds import crd_manifests
from mcm.api.machine import GROUP, VERSION
from mcm.client.client import Client
from mcm.client.errors import KubeError, NotFound, ProtocolError, TransportError
from mcm.client.requests import SEND, Call
from mcm.client.transport import Response
from mcm.clock import Clock
from mcm.controllers.selection import Group
from mcm.manager import LEASE_NAMES
from mcm.options import Options
from mcm.preflight.read_only import REVIEWS, ReadOnlyTransport
from mcm.preflight.seen import (
    Denied,
    Granted,
    JSONDocument,
    Objects,
    One,
    Seen,
    Server,
    Unread,
)

_PAGE: Final = 500
_AT_ONCE: Final = 8
_TOKENS_LIVE_IN: Final = "kube-system"
_CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HOOKS: Final = "/apis/admissionregistration.k8s.io/v1"
_MACHINES: Final = f"/apis/{GROUP}/{VERSION}"
SIMULATED: Final = "simulated"
_VIRTUAL_MACHINES: Final = "virtualmachines.simulation.machine.sapcloud.io"


@final
class ClusterReader:
    """One cluster. ``name`` is what it is called in findings."""

    def __init__(self, name: str, transport: ReadOnlyTransport, *, clock: Clock) -> None:
        self.name = name
        self._transport = transport
        self._client = Client(
            transport, clock=clock, user_agent="mcm-preflight", budget=10.0, timeout=10.0
        )

    async def server(self) -> Server:
        """Ask who answers there. Never raises for one that does not."""
        try:
            version = orjson.loads(await self._client.get_raw("/version"))
        except TransportError as error:
            return Server(self.name, unreachable=str(error))
        except (KubeError, orjson.JSONDecodeError):
            version = {}
        said = version.get("gitVersion", "") if isinstance(version, dict) else ""
        return Server(self.name, version=str(said), ahead=self._transport.ahead)

    async def one(self, path: str) -> One:
        """Read one object."""
        try:
            return _document(await self._client.get_raw(path))
        except NotFound:
            return None
        except KubeError as error:
            return Unread(str(error))

    async def all(self, path: str, *, kind: str = "", version: str = "") -> Objects:
        """Read a collection, page by page; items get the ``kind`` that lists may leave out."""
        found: list[JSONDocument] = []
        token = ""
        while True:
            query = (("limit", str(_PAGE)), *((("continue", token),) if token else ()))
            try:
                page = _document(await self._client.get_raw(path, query=query))
            except NotFound:
                return ()
            except KubeError as error:
                return Unread(str(error))
            found += [
                {"apiVersion": version, "kind": kind, **item} for item in page.get("items") or ()
            ]
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return found

    async def served(self, path: str) -> Sequence[str] | Unread:
        """Return the resources and subresources of a group's version, none if it is not served."""
        answer = await self.one(path)
        if answer is None or isinstance(answer, Unread):
            return answer or ()
        return [str(entry["name"]) for entry in answer.get("resources") or ()]

    async def granted(self, purpose: Purpose, namespace: str) -> Granted:
        """Have the server review each access of ``purpose``; without a namespace, in all."""
        place = f"{self.name} cluster" + (f", namespace {namespace}" if namespace else "")
        turns = asyncio.Semaphore(_AT_ONCE)
        asked = [(rule, access) for rule in purpose.rules for access in rule.accesses()]
        try:
            answers = await asyncio.gather(
                *(self._may(access, namespace, turns) for _, access in asked)
            )
        except KubeError as error:
            return Granted(purpose, place, unanswered=str(error))
        refused = [pair for pair, answer in zip(asked, answers, strict=True) if not answer]
        return Granted(purpose, place, tuple(_denied(purpose, place, refused)))

    async def _may(self, access: Access, namespace: str, turns: asyncio.Semaphore) -> bool:
        resource, _, subresource = access.resource.partition("/")
        attributes = {
            "namespace": namespace,
            "group": access.group,
            "resource": resource,
            "subresource": subresource,
            "verb": access.verb,
            "name": access.name,
        }
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {k: v for k, v in attributes.items() if v}},
        }
        call = Call("REVIEW", "POST", REVIEWS, headers=SEND, body=orjson.dumps(body))
        async with turns:
            return await self._client.perform(call, _allowed)


async def look(
    options: Options, control: ClusterReader, target: ClusterReader | None, *, clock: Clock
) -> Seen:
    """See everything. Never raises for what a server refuses or is not there."""
    servers = [await reader.server() for reader in dict.fromkeys((control, target)) if reader]
    if any(server.unreachable for server in servers if server.name == control.name):
        return Seen(options=options, now=clock.now(), servers=servers)
    namespace = options.clusters.namespace
    in_namespace = f"{_MACHINES}/namespaces/{namespace}"
    version = f"{GROUP}/{VERSION}"
    reachable = target if not servers[-1].unreachable else None
    return Seen(
        options=options,
        servers=servers,
        crds={name: await control.one(f"{_CRDS}/{name}") for name in _crds_needed(options)},
        served={version: await control.served(_MACHINES)},
        access=[
            await reader.granted(needed(purpose(name), options), place)
            for reader, name, place in _purposes(options, control, reachable)
            if needed(purpose(name), options).rules
        ],
        leases={
            name: await control.one(
                f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"
            )
            for name in lease_names(options)
        },
        machines=await control.all(f"{in_namespace}/machines", kind="Machine", version=version),
        machine_sets=await control.all(
            f"{in_namespace}/machinesets", kind="MachineSet", version=version
        ),
        machine_deployments=await control.all(
            f"{in_namespace}/machinedeployments", kind="MachineDeployment", version=version
        ),
        machine_classes=await control.all(
            f"{in_namespace}/machineclasses", kind="MachineClass", version=version
        ),
        old_classes={
            plural: await control.all(f"{in_namespace}/{plural}") for plural in OLD_CLASSES
        },
        nodes=await reachable.all("/api/v1/nodes", kind="Node", version="v1") if reachable else (),
        webhooks=await _webhooks(control),
        deployments=await control.all(
            f"/apis/apps/v1/namespaces/{namespace}/deployments", kind="Deployment"
        ),
        # When all was read: what was renewed meanwhile must not lie in the future.
        now=clock.now(),
    )


def lease_names(options: Options) -> list[str]:
    """Return the leases that a manager with these options contends for."""
    of_group = dict(zip(Group, LEASE_NAMES, strict=True))
    names = [of_group[group] for group in options.controllers.groups]
    shard = options.sharding.shard
    return names if shard is None else [*(shard.lease(name) for name in names), *names]


def needed(purpose: Purpose, options: Options) -> Purpose:
    """Return what of ``purpose`` the chosen controllers need, and of leases those of them."""
    groups = {*options.controllers.groups, ""}
    rules = [rule for rule in purpose.rules if rule.only_for in groups]
    leases = tuple(lease_names(options))
    return replace(
        purpose,
        rules=tuple(replace(rule, names=leases) if rule.names else rule for rule in rules),
    )


async def _webhooks(control: ClusterReader) -> Objects:
    found: list[JSONDocument] = []
    for kind in ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"):
        of_kind = await control.all(f"{_HOOKS}/{kind.lower()}s", kind=kind)
        if isinstance(of_kind, Unread):
            return of_kind
        found += of_kind
    return found


def _crds_needed(options: Options) -> Iterator[str]:
    for manifest in crd_manifests():
        metadata = manifest["metadata"]
        assert isinstance(metadata, dict)
        yield str(metadata["name"])
    if options.provider.name == SIMULATED:
        yield _VIRTUAL_MACHINES


def _purposes(
    options: Options, control: ClusterReader, target: ClusterReader | None
) -> Iterator[tuple[ClusterReader, str, str]]:
    """Yield who is asked for which purpose, and in which namespace."""
    namespace = options.clusters.namespace
    simulated, cloud = options.provider.name == SIMULATED, options.provider.simulate_cloud
    yield control, "control", namespace
    if options.sharding.shard is not None:
        yield control, "sharding", namespace
    if simulated:
        yield control, "provider-simulated", namespace
    if cloud:
        yield control, "simulated-cloud-control", namespace
    if target is not None:
        yield target, "target", ""
        yield target, "target-bootstrap-tokens", _TOKENS_LIVE_IN
        if cloud:
            yield target, "simulated-cloud-target", ""


def _denied(
    purpose: Purpose, place: str, refused: Sequence[tuple[Rule, Access]]
) -> Iterator[Denied]:
    for rule in purpose.rules:
        verbs: defaultdict[str, list[str]] = defaultdict(list)
        for of, access in refused:
            if of is rule:
                name = f" {access.name}" if access.name else ""
                group = f".{access.group}" if access.group else ""
                verbs[f"{access.resource}{group}{name}"].append(access.verb)
        if verbs:
            yield Denied(purpose, rule, place, {key: tuple(v) for key, v in verbs.items()})


def _allowed(response: Response) -> bool:
    status = _document(response.body).get("status") or {}
    return bool(status.get("allowed"))


def _document(body: bytes) -> JSONDocument:
    try:
        found = msgspec.json.decode(body, type=dict)
    except msgspec.DecodeError as error:
        raise ProtocolError("the server answers with what is no JSON object") from error
    return dict(found)
