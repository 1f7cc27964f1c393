"""Of those that wait to be given up one is woken for each room, and nobody waits for ever."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import Machine
from mcm.api.meta import OwnerReference
from mcm.controllers.machine.health.waiting_line import LOOK_AGAIN, WaitingLine
from tests.unit.machine.objects import machine

GROUP = "ns/d"


def waiting(name: str, *, set_uid: str = "set", group: str = "d") -> Machine:
    subject = machine(name, phase="Unknown", group=group)
    owner = OwnerReference(
        api_version="v", kind="MachineSet", name=set_uid, uid=set_uid, controller=True
    )
    metadata = msgspec.structs.replace(subject.metadata, owner_references=(owner,))
    return msgspec.structs.replace(subject, metadata=metadata)


@dataclass
class Fleet:
    """Machines that want to be given up, a queue and timers; ``limit`` may move at a time."""

    limit: int = 1
    moving: int = 0
    wanting: dict[str, Machine] = field(default_factory=dict)
    queue: dict[str, None] = field(default_factory=dict)
    timers: dict[str, float] = field(default_factory=dict)
    given_up: list[str] = field(default_factory=list)
    passes: int = 0
    now: float = 0.0

    def __post_init__(self) -> None:
        self.line = WaitingLine(wake=self.wake, wake_after=self.wake_after)

    def wake(self, key: str) -> None:
        self.queue[key] = None

    def wake_after(self, key: str, seconds: float) -> None:
        self.timers[key] = min(self.now + seconds, self.timers.get(key, self.now + seconds))

    def add(self, subject: Machine) -> None:
        self.wanting[subject.metadata.key] = subject
        self.wake(subject.metadata.key)

    def next(self) -> str:
        key = next(iter(self.queue))
        del self.queue[key]
        return key

    def look_at(self, key: str, *, sees_room: bool = True, used: bool = True) -> None:
        """A pass; a mirror that is behind ``sees_room`` not yet."""
        self.passes += 1
        with self.line.attending(key):
            subject = self.wanting.get(key)
            if subject is None:
                return  # it recovered, or is gone
            if self.moving >= self.limit or not sees_room:
                self.line.refused(subject)
                return
            self.line.granted(subject)
            if used:
                self.moving += 1
                self.given_up.append(key)
                del self.wanting[key]
        if not used:
            self.line.offer(GROUP)
            self.wake(key)  # the write is tried again

    def fail_at(self, key: str) -> None:
        """A pass that fails before it asks, and is repeated."""
        with self.line.attending(key):
            pass
        self.wake(key)

    def come_to_rest(self) -> None:
        self.moving -= 1
        self.mirror_moves()

    def mirror_moves(self) -> None:
        for key in self.line.next_of(GROUP):
            self.wake(key)

    def fire(self) -> None:
        """Let time go on to the next timer."""
        key, at = min(self.timers.items(), key=lambda item: item[1])
        del self.timers[key]
        self.now = max(self.now, at)
        self.wake(key)

    def settle(self) -> None:
        """Let everything happen that is due, replacements one after the other."""
        while self.queue or self.moving or (self.wanting and self.timers):
            if self.queue:
                self.look_at(self.next())
            elif self.moving:
                self.come_to_rest()
            else:
                self.fire()


def test_they_are_given_up_in_the_order_in_which_they_asked_with_few_passes() -> None:
    fleet = Fleet(moving=1)
    names = [f"m{number:03}" for number in range(200)]
    for name in names:
        fleet.add(waiting(name))
    fleet.settle()
    assert fleet.given_up == [f"ns/{name}" for name in names]
    assert fleet.now == 0.0
    assert fleet.passes <= 2 * len(names) + 1


def test_what_has_no_room_for_anybody_moves_nobody_from_its_place() -> None:
    fleet = Fleet(moving=1)
    for name in "abc":
        fleet.add(waiting(name))
    for _ in range(7):
        while fleet.queue:
            fleet.look_at(fleet.next())
        fleet.mirror_moves()
    fleet.settle()
    assert fleet.given_up == ["ns/a", "ns/b", "ns/c"]


def test_two_rooms_that_come_together_are_offered_to_two() -> None:
    fleet = Fleet(limit=2, moving=2)
    for name in "abc":
        fleet.add(waiting(name))
    while fleet.queue:
        fleet.look_at(fleet.next())
    fleet.come_to_rest()
    fleet.come_to_rest()
    assert [*fleet.queue] == ["ns/a", "ns/b"]


def test_whom_something_else_holds_up_does_not_stop_those_of_another_set() -> None:
    line = WaitingLine(wake=lambda _: None, wake_after=lambda _, __: None)
    stuck, other = waiting("a", set_uid="one"), waiting("b", set_uid="two")
    line.refused(stuck)
    line.refused(other)
    assert line.next_of(GROUP) == ("ns/a", "ns/b")
    assert line.next_of("ns/e") == ()


def test_a_call_during_a_pass_is_for_the_next_one() -> None:
    fleet = Fleet(moving=1)
    for name in "ab":
        fleet.add(waiting(name))
    while fleet.queue:
        fleet.look_at(fleet.next())
    with fleet.line.attending("ns/a"):
        fleet.line.refused(fleet.wanting["ns/a"])
        fleet.come_to_rest()  # calls a, which was just refused
    assert [*fleet.queue] == ["ns/a"]
    del fleet.wanting["ns/a"]
    fleet.settle()
    assert fleet.given_up == ["ns/b"]
    assert fleet.now == 0.0


def test_a_lost_call_holds_the_line_up_for_a_minute_at_most() -> None:
    fleet = Fleet(moving=1)
    for name in "abc":
        fleet.add(waiting(name))
    while fleet.queue:
        fleet.look_at(fleet.next())
    fleet.come_to_rest()
    assert fleet.next() == "ns/a"  # and nobody here looks at it, now or later
    del fleet.wanting["ns/a"], fleet.timers["ns/a"]
    fleet.settle()
    assert fleet.given_up == ["ns/b", "ns/c"]
    assert fleet.now <= LOOK_AGAIN


def test_who_moves_to_another_deployment_waits_there() -> None:
    line = WaitingLine(wake=lambda _: None, wake_after=lambda _, __: None)
    line.refused(waiting("a"))
    line.refused(waiting("a", group="e"))
    assert line.next_of(GROUP) == ()
    assert line.next_of("ns/e") == ("ns/a",)


@given(
    limit=st.integers(1, 3),
    names=st.integers(1, 8),
    steps=st.lists(
        st.sampled_from(
            ["pass", "stale", "catches up", "fails", "not used", "lost", "rest", "recovers", "fire"]
        ),
        max_size=60,
    ),
    data=st.data(),
)
def test_whatever_happens_on_the_way_all_who_still_want_it_are_given_up(
    limit: int, names: int, steps: list[str], data: st.DataObject
) -> None:
    """Mirrors lag, calls get lost, passes and writes fail, machines recover in line or called."""
    fleet = Fleet(limit=limit, moving=limit)
    for number in range(names):
        fleet.add(waiting(f"m{number}"))
    while fleet.queue:
        fleet.look_at(fleet.next())
    for step in steps:
        match step:
            case "pass" if fleet.queue:
                fleet.look_at(fleet.next())
            case "stale" if fleet.queue:
                fleet.look_at(fleet.next(), sees_room=False)
                fleet.mirror_moves()  # once it has caught up
            case "catches up":
                fleet.mirror_moves()
            case "fails" if fleet.queue:
                fleet.fail_at(fleet.next())
            case "not used" if fleet.queue:
                fleet.look_at(fleet.next(), used=False)
            case "lost" if fleet.queue and (key := next(iter(fleet.queue))) in fleet.line.called:
                del fleet.queue[key]
                fleet.wanting.pop(key, None)  # another process has it now
            case "rest" if fleet.moving:
                fleet.come_to_rest()
            case "recovers" if fleet.wanting:
                key = data.draw(st.sampled_from(sorted(fleet.wanting)))
                del fleet.wanting[key]
                fleet.wake(key)
            case "fire" if fleet.timers:
                fleet.fire()
        assert fleet.moving <= limit
    fleet.settle()
    assert not fleet.wanting
    assert fleet.passes <= 20 * (names + len(steps))


def test_an_empty_line_keeps_nothing() -> None:
    fleet = Fleet()
    for name in "abc":
        fleet.add(waiting(name))
    fleet.settle()
    assert fleet.line.next_of(GROUP) == ()
    assert not fleet.line.called
