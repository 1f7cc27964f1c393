"""Two kinds that nobody here knows: pumps hang on pipes, and a pipe stays while one does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import ApiStruct, JSONObject, ObjectMeta, Resource
from mcm.client.errors import Conflict, KubeError
from mcm.controllers.finalizers import (
    InUse,
    build_in_use,
    finalizer_in_step,
    keeping,
    keys_of_user_change,
)
from mcm.controllers.finalizers.in_use import LOOK_AGAIN
from mcm.controllers.runtime import Controller
from mcm.informers import Change
from tests.unit.machineset.cluster import EPOCH, NAMESPACE, Cluster, Running, Write, play

FINALIZER = "plumbing.example.com/in-use"


class Pipe(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()


class Pump(ApiStruct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    pipes: tuple[str, ...] = ()


PIPES = Resource("plumbing.example.com", "v1", "pipes", "Pipe", Pipe)
PUMPS = Resource("plumbing.example.com", "v1", "pumps", "Pump", Pump)


def uses(pump: Pump) -> list[str]:
    return [f"{pump.metadata.namespace}/{pipe}" for pipe in pump.pipes]


def build(cluster: Cluster) -> Controller:
    pumps = cluster.factory.store(PUMPS)
    in_use = InUse(
        used=PIPES,
        users=PUMPS,
        uses=uses,
        told_at=("pipes",),
        is_used=lambda pipe: any(pipe.metadata.key in uses(p) for p in pumps.list()),
        decide=keeping(FINALIZER),
    )
    factory = cluster.factory
    return build_in_use(cluster.context, "pipe", in_use, used_from=factory, users_from=factory)


def pipe(name: str) -> JSONObject:
    return {"metadata": {"name": name}}


def pump(name: str, *pipes: str) -> JSONObject:
    return {"metadata": {"name": name}, "pipes": list(pipes)}


def held(cluster: Cluster, name: str) -> bool:
    return FINALIZER in cluster.get(PIPES, name).metadata.finalizers


def test_the_finalizer_follows_the_use() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with Running(cluster, [build(cluster)]) as controllers:
            for name in ("a", "b", "c"):
                await cluster.create(PIPES, pipe(name))
            await cluster.create(PUMPS, pump("p", "a", "b"))
            await controllers.settle()
            assert [held(cluster, n) for n in "abc"] == [True, True, False]
            await cluster.patch(PUMPS, "p", {"pipes": ["b", "c"]})
            await controllers.settle()
            assert [held(cluster, n) for n in "abc"] == [False, True, True]
            cluster.writes.clear()
            await cluster.patch(PUMPS, "p", {"metadata": {"labels": {"x": "y"}}})
            await controllers.settle(24 * 3600)
            assert len(cluster.writes) == 1  # the test's own

    play(scenario)


def test_a_used_object_that_is_deleted_goes_with_its_last_user() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        async with Running(cluster, [build(cluster)]) as controllers:
            await cluster.create(PIPES, pipe("a"))
            await cluster.create(PUMPS, pump("p", "a"))
            await cluster.create(PUMPS, pump("q", "a"))
            await controllers.settle()
            await cluster.delete(PIPES, "a")
            await cluster.delete(PUMPS, "p")
            await controllers.settle()
            assert held(cluster, "a")
            await cluster.delete(PUMPS, "q")
            await controllers.settle()
            assert cluster.all(PIPES) == []

    play(scenario)


def test_while_a_user_cannot_be_read_nothing_is_let_go() -> None:
    async def scenario() -> None:
        cluster = Cluster()
        pumps = cluster.factory.store(PUMPS)
        async with Running(cluster, [build(cluster)]) as controllers:
            await cluster.create(PIPES, pipe("a"))
            await cluster.create(PUMPS, pump("p", "a"))
            await controllers.settle()
            pumps.mark_unreadable(f"{NAMESPACE}/opaque", "pipes: Expected `array`, got `str`")
            await cluster.delete(PUMPS, "p")
            await controllers.settle(10 * LOOK_AGAIN)
            assert held(cluster, "a")
            pumps.remove(f"{NAMESPACE}/opaque", uid="", version="")
            await controllers.settle(LOOK_AGAIN)
            assert not held(cluster, "a")

    play(scenario)


def test_another_finalizer_written_meanwhile_is_not_lost() -> None:
    """The mirror is behind: the write is refused, and made again when the mirror knows."""

    async def scenario() -> None:
        cluster = Cluster()
        refusals: list[KubeError] = []

        def refuse(write: Write) -> KubeError | None:
            metadata = write.body.get("metadata")
            if write.resource != "pipes" or not isinstance(metadata, dict) or refusals:
                return None
            if "finalizers" not in metadata:
                return None
            assert metadata["resourceVersion"], "a list is only replaced in the version seen"
            refusals.append(Conflict(409, "Conflict", "somebody was faster"))
            return refusals[0]

        async with Running(cluster, [build(cluster)]) as controllers:
            await cluster.create(PIPES, {"metadata": {"name": "a", "finalizers": ["theirs"]}})
            cluster.api.refuse = refuse
            await cluster.create(PUMPS, pump("p", "a"))
            await controllers.settle()
            assert len(refusals) == 1
            assert cluster.get(PIPES, "a").metadata.finalizers == (FINALIZER, "theirs")

    play(scenario)


def of(*pipes: str, name: str = "p") -> Pump:
    return Pump(metadata=ObjectMeta(name=name, namespace="n"), pipes=pipes)


@pytest.mark.parametrize(
    ("old", "new", "resync", "expected"),
    [
        pytest.param(None, of("a", "b"), False, ("n/a", "n/b"), id="a user comes"),
        pytest.param(of("a"), None, False, ("n/a",), id="a user goes"),
        pytest.param(of("a"), of("b"), False, ("n/a", "n/b"), id="a user changes its mind"),
        pytest.param(of("a"), of("a", name="q"), False, (), id="another change of a user"),
        pytest.param(of("a"), of("a"), True, (), id="a repetition"),
    ],
)
def test_a_user_concerns_what_it_needs_or_needed(
    old: Pump | None, new: Pump | None, resync: bool, expected: tuple[str, ...]
) -> None:
    assert keys_of_user_change(uses, Change(old, new, resync=resync)) == expected


names = st.sampled_from([FINALIZER, "a", "b", "c"])


def finalizers_in(patch: JSONObject) -> list[str]:
    metadata = patch["metadata"]
    assert isinstance(metadata, dict)
    return [str(finalizer) for finalizer in metadata["finalizers"]]


@given(finalizers=st.lists(names, unique=True), used=st.booleans(), leaving=st.booleans())
def test_keeping_in_step_settles_and_touches_no_other_finalizer(
    finalizers: list[str], used: bool, leaving: bool
) -> None:
    deleted = EPOCH if leaving else None
    meta = ObjectMeta(name="a", finalizers=tuple(finalizers), deletion_timestamp=deleted)
    patch = finalizer_in_step(meta, FINALIZER, used=used)
    after = finalizers if patch is None else finalizers_in(patch)
    assert {*after} - {FINALIZER} == {*finalizers} - {FINALIZER}
    if not (leaving and used):
        assert (FINALIZER in after) is used
    else:
        assert after == finalizers
    settled = ObjectMeta(name="a", finalizers=tuple(after), deletion_timestamp=deleted)
    assert finalizer_in_step(settled, FINALIZER, used=used) is None
