"""Whatever a server and a network do to a reflector: once they are well, the mirror is right."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.api.machine import Machine
from mcm.client.errors import (
    ConnectionRefused,
    Forbidden,
    Gone,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    TransportError,
)
from mcm.informers import ReflectorOptions
from mcm.informers.versions import newer
from tests.unit.informers.apiserver import ApiServer, Break, Fault, too_large
from tests.unit.informers.mirror import Mirror, on_mirror

NAMES = st.sampled_from(["a", "b", "c"])
ERRORS = st.sampled_from(
    [
        ConnectionRefused("refused"),
        TransportError("reset"),
        RequestTimeout("no answer"),
        TooManyRequests(429, retry_after=7.0),
        Gone(410, "Expired", "too old"),
        ServerError(500),
        ServerError(503, retry_after=11.0),
        Forbidden(403),
        too_large(),
    ]
)
FAULTS = st.builds(
    Fault,
    st.sampled_from(Break),
    after=st.sampled_from([0.0, 0.5, 3.0, 45.0, 100.0]),
    at_once=st.booleans(),
)


@dataclass(frozen=True)
class Step:
    """One thing that happens; ``text`` is what a failing example shows."""

    text: str
    do: Callable[[Mirror], object]

    def __repr__(self) -> str:
        return self.text


def put(name: str, phase: str) -> Step:
    return Step(f"put {name} {phase}", lambda m: m.server.put(name, phase))


def delete(name: str) -> Step:
    return Step(f"delete {name}", lambda m: name in m.server.objects and m.server.drop(name))


def own_put(name: str, phase: str, delay: float) -> Step:
    def do(mirror: Mirror) -> None:
        later(mirror, delay, mirror.informer.store.observe, mirror.server.put(name, phase))

    return Step(f"own put {name} {phase}, answered after {delay}", do)


def own_delete(name: str, delay: float) -> Step:
    def do(mirror: Mirror) -> None:
        if name in mirror.server.objects:
            gone = mirror.server.drop(name)
            later(mirror, delay, mirror.informer.store.observe_deleted, gone)

    return Step(f"own delete {name}, answered after {delay}", do)


def later(
    mirror: Mirror, delay: float, observe: Callable[[Machine], None], answer: Machine
) -> None:
    mirror.task.get_loop().call_later(delay, observe, answer)


def watch_fault(fault: Exception | Fault) -> Step:
    return Step(f"watch: {fault!r}", lambda m: m.server.watch_faults.append(fault))


def list_fault(error: Exception) -> Step:
    return Step(f"list: {error!r}", lambda m: m.server.list_faults.append(error))


def setting(name: str, value: object) -> Step:
    return Step(f"{name} = {value}", lambda m: setattr(m.server, name, value))


def sleep(seconds: float) -> Step:
    return Step(f"sleep {seconds}", lambda _: None)


DELAYS = st.sampled_from([0.0, 0.0015, 1.0, 80.0])
WRITES = st.one_of(
    st.builds(put, NAMES, st.sampled_from(["Pending", "Running", "é\u0085\u2028\r"])),
    st.builds(delete, NAMES),
    st.builds(own_put, NAMES, st.sampled_from(["Failed", "Running"]), DELAYS),
    st.builds(own_delete, NAMES, DELAYS),
)
TROUBLES = st.one_of(
    st.builds(watch_fault, ERRORS | FAULTS),
    st.builds(list_fault, ERRORS),
    st.just(Step("compact", lambda m: m.server.compact())),
    st.builds(setting, st.just("down"), st.booleans()),
    st.builds(setting, st.just("bookmarks"), st.booleans()),
    st.builds(setting, st.just("streams_lists"), st.booleans()),
    st.builds(setting, st.just("page_cap"), st.sampled_from([None, 1, 2])),
    st.builds(setting, st.just("chunk"), st.sampled_from([1, 5, 1 << 20])),
)
SLEEPS = st.builds(sleep, st.sampled_from([0.0, 0.001, 0.0015, 0.5, 5.0, 61.0, 75.0, 700.0]))
SCRIPTS = st.lists(st.one_of(WRITES, TROUBLES, SLEEPS), max_size=40)

# Silence is noticed after 70 s, a back-off lasts up to 30 s, an old fault up to 100 s.
ENOUGH_TO_HEAL = 100.0 + 70.0 + 3 * 30.0 + 80.0


async def play(mirror: Mirror, script: Sequence[Step]) -> None:
    for step in script:
        step.do(mirror)
        if step.text.startswith("sleep"):
            await mirror.sleep(float(step.text.split()[1]))


async def heal(mirror: Mirror) -> None:
    mirror.server.watch_faults.clear()
    mirror.server.list_faults.clear()
    mirror.server.down = False
    await mirror.sleep(ENOUGH_TO_HEAL)


def most_in_a_minute(times: Sequence[float]) -> int:
    return max((sum(start <= t < start + 60 for t in times) for start in times), default=0)


@settings(max_examples=500, deadline=None)
@given(SCRIPTS, st.booleans(), st.integers(0, 2**32))
def test_the_mirror_converges(script: list[Step], streamed: bool, seed: int) -> None:
    async def scenario(mirror: Mirror) -> None:
        await play(mirror, script)
        await heal(mirror)
        assert mirror.informer.synced
        assert mirror.agrees()
        assert mirror.informer.healthy(mirror.clock.monotonic())
        assert mirror.server.impatient == 0
        assert most_in_a_minute([s.at for s in mirror.server.seen]) < 100
        assert not newer(mirror.informer.store.resource_version, str(mirror.server.version))

    on_mirror(scenario, options=ReflectorOptions(streamed_lists=streamed), seed=seed)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(WRITES, SLEEPS), max_size=25), st.integers(0, 2**32))
def test_a_streamed_list_tells_the_same_as_list_and_watch(script: list[Step], seed: int) -> None:
    def told(streamed: bool) -> dict[str, list[tuple[str, str, bool]]]:
        async def scenario(mirror: Mirror) -> dict[str, list[tuple[str, str, bool]]]:
            for name in ("a", "b"):
                mirror.server.put(name, "Running")
            await mirror.informer.wait_synced()
            await mirror.sleep(1)
            await play(mirror, script)
            await mirror.sleep(100)
            found: dict[str, list[tuple[str, str, bool]]] = {}
            for change in mirror.replay.changes:
                meta = change.object.metadata
                phase = "gone" if change.new is None else change.new.phase
                found.setdefault(meta.key, []).append((meta.uid, phase, change.initial))
            return found

        return on_mirror(scenario, options=ReflectorOptions(streamed_lists=streamed), seed=seed)

    assert told(True) == told(False)


def test_an_hour_of_every_fault_in_turn_is_survived_calmly() -> None:
    def server() -> ApiServer:
        made = ApiServer()
        made.put("a")
        faults: list[Exception | Fault] = [Fault(kind, at_once=True) for kind in Break]
        faults += [ConnectionRefused("x"), ServerError(500), Gone(410, "Expired", "")]
        picks = random.Random(1)
        made.watch_faults.extend(picks.choice(faults) for _ in range(100_000))
        return made

    async def scenario(mirror: Mirror) -> int:
        await mirror.sleep(3600)
        return len(mirror.server.seen)

    assert on_mirror(scenario, server=server) < 700
