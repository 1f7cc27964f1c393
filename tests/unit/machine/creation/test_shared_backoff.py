"""One machine tries for all of its class and zone: decisions, by table and by random histories."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.controllers.machine.backoff import Pace
from mcm.controllers.machine.creation.shared_backoff import (
    Group,
    Hold,
    Refusal,
    SharedBackoff,
    Sharing,
    sharing_of,
)
from mcm.driver.codes import Code

GROUP = Group("ns/c", "z1")
QUOTA = 180.0
AT = datetime(2026, 1, 1, tzinfo=UTC)
PACES = {Code.RESOURCE_EXHAUSTED: Pace.EXHAUSTED, Code.UNAVAILABLE: Pace.TRANSIENT}


class Play:
    """A group in one's hands. ``woken`` are the keys called, in order."""

    def __init__(self) -> None:
        self.woken: list[str] = []
        self.shared = SharedBackoff(
            exhausted=QUOTA, random=random.Random(1), wake=self.woken.append
        )

    def ask(
        self, uid: str, now: float, *, group: Group = GROUP, circumstances: int = 1
    ) -> Hold | None:
        return self.shared.ask(group, uid, f"ns/{uid}", now, circumstances=circumstances)

    def refuse(
        self,
        uid: str,
        now: float,
        code: Code = Code.RESOURCE_EXHAUSTED,
        *,
        group: Group = GROUP,
        circumstances: int = 1,
    ) -> Hold | None:
        return self.shared.refused(
            group,
            uid,
            f"ns/{uid}",
            now,
            Refusal(code, "no", uid, AT),
            pace=PACES.get(code, Pace.LASTING),
            circumstances=circumstances,
        )

    def succeed(self, uid: str, now: float) -> None:
        self.shared.succeeded(GROUP, uid, now)

    def may(self, names: str, now: float) -> str:
        """Which of the machines may try."""
        return "".join(name for name in names if self.ask(name, now) is None)


@pytest.mark.parametrize(
    ("code", "pace", "sharing"),
    [
        (Code.RESOURCE_EXHAUSTED, Pace.EXHAUSTED, Sharing.SURE),
        (Code.RESOURCE_EXHAUSTED, Pace.TRANSIENT, Sharing.NEVER),  # of calls, by GetMachineStatus
        (Code.UNAUTHENTICATED, Pace.LASTING, Sharing.SURE),
        (Code.PERMISSION_DENIED, Pace.LASTING, Sharing.SURE),
        (Code.UNIMPLEMENTED, Pace.LASTING, Sharing.SURE),
        (Code.INVALID_ARGUMENT, Pace.LASTING, Sharing.IF_SEVERAL),
        (Code.OUT_OF_RANGE, Pace.LASTING, Sharing.IF_SEVERAL),
        (Code.UNAVAILABLE, Pace.TRANSIENT, Sharing.IF_SEVERAL),
        (Code.INTERNAL, Pace.LASTING, Sharing.NEVER),
        (Code.UNKNOWN, Pace.TRANSIENT, Sharing.NEVER),
        (Code.DEADLINE_EXCEEDED, Pace.TRANSIENT, Sharing.NEVER),
        (Code.ALREADY_EXISTS, Pace.LASTING, Sharing.NEVER),
        (Code.ABORTED, Pace.TRANSIENT, Sharing.NEVER),
    ],
)
def test_a_code_is_shared_if_it_concerns_the_class(
    code: Code, pace: Pace, sharing: Sharing
) -> None:
    assert sharing_of(code, pace) is sharing


def test_after_a_refusal_all_wait_and_then_one_tries() -> None:
    play = Play()
    assert play.may("abc", 0.0) == "abc"
    play.refuse("a", 1.0)
    play.refuse("b", 1.5)
    assert play.may("abcd", 2.0) == ""
    assert play.may("abcd", 1.0 + QUOTA - 0.01) == ""
    assert play.may("abcd", 1.0 + QUOTA) == "a"
    assert play.may("bcd", 10_000.0) == ""


def test_the_first_looks_again_at_its_time_and_the_others_if_it_does_not() -> None:
    play = Play()
    first = play.refuse("a", 0.0)
    assert first is not None and (first.after, first.retry_in) == (QUOTA, QUOTA)
    other = play.ask("b", 10.0)
    assert other is not None and other.retry_in == QUOTA - 10 < other.after
    assert other.refusal.machine == "a"
    assert play.ask("b", other.after + 10.0) is None


def test_refusals_of_one_volley_count_once() -> None:
    play = Play()
    for uid in "abcdef":
        assert play.ask(uid, 0.0) is None
    waits = [play.refuse(uid, 1.0, Code.UNAUTHENTICATED) for uid in "abcdef"]
    assert all(wait is not None and wait.retry_in <= 30.0 for wait in waits)


def test_waits_grow_where_somebody_must_mend_something_and_never_for_quota() -> None:
    play, now = Play(), 0.0
    spans = []
    for _ in range(8):
        assert play.ask("a", now) is None
        hold = play.refuse("a", now, Code.PERMISSION_DENIED)
        assert hold is not None
        spans.append(hold.retry_in)
        now += hold.retry_in
    assert spans[0] <= 30.0 and 450.0 <= spans[-1] <= 600.0
    quota = Play()
    for n in range(4):
        assert quota.ask("a", n * QUOTA) is None
        hold = quota.refuse("a", n * QUOTA)
        assert hold is not None and hold.retry_in == QUOTA


def test_a_success_lets_two_try_then_four_and_then_everybody() -> None:
    play = Play()
    names = [f"m{n}" for n in range(200)]
    play.refuse(names[0], 0.0)
    for name in names:
        play.ask(name, 1.0)
    volley = [n for n in names if play.ask(n, QUOTA) is None]
    sizes = []
    while volley:
        sizes.append(len(volley))
        for name in volley:
            play.succeed(name, QUOTA)
            names.remove(name)
        volley = [n for n in names if play.ask(n, QUOTA) is None]
    assert sizes[:6] == [1, 2, 4, 8, 16, 32]
    assert not names


def test_whoever_may_go_on_is_woken() -> None:
    play = Play()
    play.refuse("a", 0.0)
    assert play.may("bcdef", 1.0) == ""
    assert play.ask("a", QUOTA) is None
    play.woken.clear()
    play.succeed("a", QUOTA)
    assert play.woken == ["ns/b", "ns/c"]
    assert play.may("bc", QUOTA) == "bc"
    play.woken.clear()
    play.refuse("b", QUOTA + 1)
    play.succeed("c", QUOTA + 2)
    assert play.may("bdef", QUOTA + 3) == ""
    assert play.woken == []


def test_a_mended_class_or_secret_lets_everybody_try() -> None:
    play = Play()
    play.refuse("a", 0.0, Code.UNAUTHENTICATED)
    assert play.ask("b", 1.0) is not None
    assert play.ask("b", 2.0, circumstances=2) is None
    assert "ns/a" in play.woken
    assert play.ask("a", 2.0, circumstances=2) is None
    assert play.refuse("a", 3.0, Code.UNAUTHENTICATED, circumstances=2) is not None
    assert play.refuse("b", 3.0, Code.UNAUTHENTICATED, circumstances=1) is None


def test_classes_and_zones_do_not_hold_each_other() -> None:
    play = Play()
    play.refuse("a", 0.0)
    assert play.ask("b", 1.0, group=Group("ns/c", "z2")) is None
    assert play.ask("c", 1.0, group=Group("ns/other", "z1")) is None


def test_one_machine_with_a_bad_name_holds_up_nobody() -> None:
    play = Play()
    for n in range(20):
        assert play.refuse("bad", float(n), Code.INVALID_ARGUMENT) is None
    assert play.may("abc", 30.0) == "abc"


def test_what_several_machines_are_answered_concerns_all_until_one_succeeds() -> None:
    play = Play()
    assert play.refuse("a", 0.0, Code.INVALID_ARGUMENT) is None
    assert play.refuse("b", 0.0, Code.INVALID_ARGUMENT) is None
    play.succeed("x", 0.0)
    assert play.refuse("c", 0.0, Code.INVALID_ARGUMENT) is None
    assert play.refuse("a", 0.0, Code.INVALID_ARGUMENT) is None
    assert play.refuse("b", 0.0, Code.INVALID_ARGUMENT) is not None
    # It may be at fault itself, so it is another one that tries next.
    assert play.may("dab", 20.0) == ""
    assert play.ask("d", 31.0) is None
    play.refuse("d", 32.0, Code.INVALID_ARGUMENT)
    assert play.woken[-1] != "ns/d"


def test_an_attempt_without_verdict_lets_the_next_one_try_soon() -> None:
    play = Play()
    play.refuse("a", 0.0)
    play.ask("b", 1.0)
    assert play.ask("a", QUOTA) is None
    play.shared.undecided(GROUP, "a", QUOTA + 1)
    assert play.woken[-1] == "ns/b"
    assert play.ask("b", QUOTA + 2) is not None
    assert play.ask("b", QUOTA + 6) is None


def test_one_without_a_place_yet_keeps_nobody_from_trying() -> None:
    play = Play()
    play.refuse("a", 0.0)
    assert play.ask("a", QUOTA) is None
    play.shared.not_begun(GROUP, "a")
    assert play.ask("b", QUOTA) is None


def test_a_machine_that_is_deleted_passes_its_turn_on_but_not_during_its_call() -> None:
    play = Play()
    play.refuse("a", 0.0)
    play.ask("b", 1.0)
    play.shared.forget("a", 2.0)
    assert play.woken == ["ns/b"]
    assert play.ask("b", QUOTA) is None
    play.shared.forget("b", QUOTA)
    assert play.ask("c", QUOTA + 1) is not None
    play.shared.undecided(GROUP, "b", QUOTA + 2)
    assert play.woken[-1] == "ns/c"


def test_refusals_that_nobody_waits_for_are_forgotten() -> None:
    play = Play()
    for n in range(50):
        play.refuse("a", 0.0, group=Group("ns/c", f"y{n}"))
        play.shared.forget("a", 0.0)
    assert len(play.shared) == 50
    play.refuse("a", 10_000.0)
    assert len(play.shared) == 2
    for n in range(5_000):
        play.refuse("b", 0.0, Code.OUT_OF_RANGE, group=Group("ns/d", f"z{n}"))
    assert len(play.shared) <= 1_002


_ACTS = st.tuples(
    st.sampled_from(("ask", "end", "gone", "pass time")),
    st.integers(0, 7),
    st.sampled_from(("refused", "succeeded", "undecided", "no place")),
)


def lived_through(play: Play, history: list[tuple[str, int, str]]) -> tuple[float, set[str], int]:
    """Play a history after a refusal; return the time, who tries, and how many did at most."""
    now, trying, most = 0.0, set[str](), 0
    play.refuse("m0", now)
    for act, number, verdict in history:
        uid = f"m{number}"
        if act == "pass time":
            now += number * 50.0
        elif act == "gone":
            play.shared.forget(uid, now)
        elif act == "ask":
            if play.ask(uid, now) is None:
                trying.add(uid)
        elif uid in trying:
            trying.discard(uid)
            match verdict:
                case "refused":
                    play.refuse(uid, now)
                case "succeeded":
                    play.succeed(uid, now)
                case "no place":
                    play.shared.not_begun(GROUP, uid)
                case _:
                    play.shared.undecided(GROUP, uid, now)
        most = max(most, len(trying))
    return now, trying, most


@settings(max_examples=300)
@given(st.lists(_ACTS.filter(lambda act: act[2] != "succeeded"), max_size=80))
def test_without_success_one_tries_at_a_time_whatever_else_happens(
    history: list[tuple[str, int, str]],
) -> None:
    assert lived_through(Play(), history)[2] <= 1


@settings(max_examples=300)
@given(st.lists(_ACTS, max_size=80))
def test_whatever_happened_somebody_may_try_in_the_end(history: list[tuple[str, int, str]]) -> None:
    play = Play()
    now, trying, _ = lived_through(play, history)
    for uid in trying:
        play.shared.undecided(GROUP, uid, now)
    assert any(play.ask(f"m{n}", now + QUOTA + 5) is None for n in range(8))


@given(st.integers(1, 300), st.integers(0, 300))
def test_however_many_wait_a_quota_is_asked_for_by_one_and_then_all_come_up(
    machines: int, quota: int
) -> None:
    """Each call ends at once. Calls refused are one a period; all get what they wait for."""
    play, now = Play(), 0.0
    waiting = [f"m{n}" for n in range(machines)]
    play.refuse(waiting[0], now)
    refused, made = 0, 0
    for period in range(1, 6):
        now = period * QUOTA
        if period == 4:
            quota = machines
        while volley := [n for n in waiting if play.ask(n, now) is None]:
            for name in volley:
                if made < quota:
                    made += 1
                    play.succeed(name, now)
                    waiting.remove(name)
                else:
                    refused += 1
                    play.refuse(name, now)
        if period == 3:
            assert made == min(quota, machines)
            assert refused <= 3 + 2 * (quota + 1)
    assert not waiting
