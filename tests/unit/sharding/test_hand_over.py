"""An object is given away once, whatever becomes of the answer to the write that does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, final

import pytest

from mcm.api.core import Lease, LeaseSpec
from mcm.api.machine import MACHINE_DEPLOYMENTS, MACHINES, Machine, MachineDeployment
from mcm.api.meta import ObjectMeta, OwnerReference
from mcm.client.errors import Conflict, KubeError, TransportError
from mcm.client.requests import Call
from mcm.client.transport import Response
from mcm.client.verbs import ObjectReader, ObjectWriter
from mcm.clock import SystemClock
from mcm.informers import Store
from mcm.sharding.gate import Gate
from mcm.sharding.hand_over import Marks, key_of
from mcm.sharding.peers import Peers
from mcm.sharding.roots import Roots
from mcm.sharding.shard import MARK, Shard

R = TypeVar("R")
A, B = Shard("a", "s=a"), Shard("b", "s=b")
KEY = key_of(MACHINES.plural, "n/m")


@final
class Stores:
    """Mirrors that show what they are told, in place of a factory of informers."""

    def __init__(self) -> None:
        self._stores: dict[str, Store[Any]] = {}

    def store(self, resource: Any) -> Store[Any]:
        return self._stores.setdefault(resource.plural, Store())


@final
class AnsweringWriter(ObjectWriter):
    """Fails each write with the next of ``errors``."""

    def __init__(self, errors: list[KubeError]) -> None:
        self.errors = errors

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        raise self.errors.pop(0)


@final
class Live(ObjectReader):
    """A server on which the deployment bears ``label``."""

    def __init__(self, label: str) -> None:
        self.label = label

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        found: Any = deployment(self.label, "9")
        return found  # type: ignore[no-any-return]

    def follow(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nothing is watched here")


def deployment(label: str, version: str) -> MachineDeployment:
    meta = ObjectMeta(
        name="d", namespace="n", uid="d", labels={"s": label}, resource_version=version
    )
    return MachineDeployment(metadata=meta)


def machine(mark: str, version: str) -> Machine:
    owner = OwnerReference(
        api_version="v1", kind=MACHINE_DEPLOYMENTS.kind, name="d", uid="d", controller=True
    )
    meta = ObjectMeta(
        name="m", namespace="n", uid="m", annotations={MARK: mark}, owner_references=(owner,),
        resource_version=version,
    )  # fmt: skip
    return Machine(metadata=meta)


def peers() -> Peers:
    found = Peers("a", base="x", period=1e9)
    for renewed in ("1", "2"):
        meta = ObjectMeta(name="x-b", annotations=dict(B.lease_annotations))
        spec = LeaseSpec(holder_identity="b", renew_time=renewed)
        found.look([Lease(metadata=meta, spec=spec)], SystemClock().monotonic())
    return found


async def test_what_may_have_been_given_away_is_not_taken_back_after_a_conflict() -> None:
    stores: Any = Stores()
    roots = Roots(stores)
    gate = Gate("a", roots, is_called=lambda _: False)
    # The first write arrives, its answer is lost; the second one is in conflict with the first.
    writer = AnsweringWriter(
        [TransportError("lost"), Conflict(409, "Conflict", ""), Conflict(409, "Conflict", "")]
    )
    marks = Marks(A, roots, gate, peers(), reader=Live("b"), writer=writer, clock=SystemClock())
    stores.store(MACHINES).observe(machine("a", "5"))
    stores.store(MACHINE_DEPLOYMENTS).observe(deployment("b", "4"))
    with pytest.raises(TransportError):
        await marks.reconcile(KEY)
    with pytest.raises(Conflict):
        await marks.reconcile(KEY)
    # The user changes the label back; the mirror of machines lags and shows ours yet.
    stores.store(MACHINE_DEPLOYMENTS).observe(deployment("a", "7"))
    with pytest.raises(Conflict):
        await marks.reconcile(KEY)
    assert not gate.admits(MACHINES.plural, "n/m")
    # What the mirror shows at last is what counts.
    stores.store(MACHINES).observe(machine("b", "6"))
    await marks.reconcile(KEY)
    assert not gate.admits(MACHINES.plural, "n/m") and writer.errors == []


async def test_a_change_by_somebody_else_only_delays_the_decision() -> None:
    stores: Any = Stores()
    roots = Roots(stores)
    gate = Gate("a", roots, is_called=lambda _: False)
    writer = AnsweringWriter([Conflict(409, "Conflict", "")])
    marks = Marks(A, roots, gate, peers(), reader=Live("b"), writer=writer, clock=SystemClock())
    stores.store(MACHINES).observe(machine("a", "5"))
    stores.store(MACHINE_DEPLOYMENTS).observe(deployment("b", "4"))
    with pytest.raises(Conflict):
        await marks.reconcile(KEY)
    assert not gate.admits(MACHINES.plural, "n/m")
    stores.store(MACHINE_DEPLOYMENTS).observe(deployment("a", "7"))
    stores.store(MACHINES).observe(machine("a", "6"))
    await marks.reconcile(KEY)
    assert gate.admits(MACHINES.plural, "n/m")


async def test_nothing_is_given_back_on_the_word_of_a_mirror_that_lags() -> None:
    stores: Any = Stores()
    roots = Roots(stores)
    gate = Gate("a", roots, is_called=lambda _: False)
    writer, live = AnsweringWriter([Conflict(409, "Conflict", "")]), Live("a")
    marks = Marks(A, roots, gate, peers(), reader=live, writer=writer, clock=SystemClock())
    # Another shard gave it to us, as it saw the new label, which our mirror has not yet.
    stores.store(MACHINES).observe(machine("a", "5"))
    stores.store(MACHINE_DEPLOYMENTS).observe(deployment("b", "4"))
    assert (await marks.reconcile(KEY)).after is not None
    assert len(writer.errors) == 1 and gate.admits(MACHINES.plural, "n/m")
    live.label = "b"
    with pytest.raises(Conflict):
        await marks.reconcile(KEY)
