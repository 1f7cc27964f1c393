from __future__ import annotations

from random import Random

import msgspec
import pytest

from mcm.api.core import Pod, PodDisruptionBudget
from mcm.drain.budgets import Allowances, Disruptions, view_for
from tests.unit.drain.budgets.world import World
from tests.unit.drain.pods import NOW, budget, pod


class Mirror:
    """What is mirrored, for as many drains as one wants."""

    def __init__(self, *budgets: PodDisruptionBudget) -> None:
        self.budgets = {b.metadata.key: b for b in budgets}
        self.pods: dict[str, Pod] = {}
        self.freed: list[str] = []
        self.disruptions = Disruptions(
            pods=self.pods.get,
            budgets=self.budgets.get,
            random=Random(1),
            freed=self.freed.append,
        )

    def take(self, names: str, now: float = 0.0, *, ask: bool = False, **how: bool) -> list[str]:
        """Return the pods that one pass may ask."""
        allowances = Allowances(self.disruptions, now=now, **how)
        subjects = [pod(name) for name in names]
        views = [view_for(subject, self.budgets.values()) for subject in subjects]
        for subject in subjects:
            self.pods.setdefault(subject.metadata.key, subject)
        got = [s for s, view in zip(subjects, views, strict=True) if allowances.take(s, view)]
        for subject, view in zip(subjects, views, strict=True):
            if ask and subject in got:
                self.disruptions.asked(subject, view)
        return [subject.metadata.name for subject in got]

    def wait(self, name: str, now: float) -> float | None:
        view = view_for(pod(name), self.budgets.values())
        return Allowances(self.disruptions, now=now).wait(view)

    def show(self, changed: PodDisruptionBudget) -> None:
        self.budgets[changed.metadata.key] = changed
        self.disruptions.budget_changed(changed.metadata.key, changed)

    def show_pod(self, changed: Pod) -> None:
        self.pods[changed.metadata.key] = changed
        self.disruptions.pod_changed(changed.metadata.uid)


def versioned(subject: Pod, version: str) -> Pod:
    meta = msgspec.structs.replace(subject.metadata, resource_version=version)
    return msgspec.structs.replace(subject, metadata=meta)


@pytest.mark.parametrize("allowed", [0, 1, 2, 3, 5])
def test_as_many_are_asked_as_are_allowed_and_the_first_get_it(allowed: int) -> None:
    mirror = Mirror(budget("b", allowed=allowed, healthy=0))
    assert mirror.take("abc") == list("abc")[:allowed]


def test_what_one_drain_asks_for_no_other_may_ask() -> None:
    mirror = Mirror(budget("b", allowed=1))
    got = [mirror.take(chr(ord("A") + drain), ask=True) for drain in range(50)]
    assert got == [["A"], *([[]] * 49)]


def test_an_accepted_eviction_counts_until_the_budget_names_its_pod() -> None:
    mirror = Mirror(budget("b", allowed=2, healthy=0, version="1"))
    assert mirror.take("a", ask=True) == ["a"]
    mirror.disruptions.granted("uid-a", 0.0)
    assert mirror.take("bc") == ["b"]
    shown = budget("b", allowed=1, healthy=0, version="2", disrupted={"a": "now"})
    mirror.show(shown)
    assert mirror.take("bc") == ["b"]
    assert mirror.disruptions.under_way(shown, 0.0) == 0


def test_an_accepted_eviction_counts_until_its_pod_goes_and_the_budget_was_written_since() -> None:
    mirror = Mirror(budget("b", allowed=2, healthy=0, version="1"))
    mirror.take("a", ask=True)
    mirror.disruptions.granted("uid-a", 0.0)
    mirror.show(budget("b", allowed=2, healthy=0, version="2"))  # a count from before
    assert mirror.take("bc") == ["b"]
    mirror.show_pod(versioned(pod("a", deleted=NOW), "4"))
    assert mirror.take("bc") == ["b"]  # still the count from before
    mirror.show(budget("b", allowed=1, healthy=0, version="5"))
    assert mirror.take("bc") == ["b"]
    mirror.show(budget("b", allowed=2, healthy=0, version="6"))
    assert mirror.take("bc") == ["b", "c"]


def test_a_pod_that_shows_last_what_its_budget_has_shown_before_frees_the_others() -> None:
    mirror = Mirror(budget("b", allowed=1, healthy=0, version="1"))
    mirror.take("a", ask=True)
    mirror.disruptions.granted("uid-a", 0.0)
    mirror.show(budget("b", allowed=1, healthy=0, version="6"))  # what was between was missed
    assert mirror.take("b") == []
    mirror.show_pod(versioned(pod("a", deleted=NOW), "4"))
    assert mirror.freed == ["default"]
    assert mirror.take("b") == ["b"]


def test_an_answer_that_comes_after_the_mirrors_frees_the_others() -> None:
    mirror = Mirror(budget("b", allowed=1, healthy=0, version="1"))
    mirror.take("a", ask=True)
    mirror.show_pod(versioned(pod("a", deleted=NOW), "4"))
    mirror.show(budget("b", allowed=1, healthy=0, version="6"))
    assert mirror.take("b") == []
    mirror.disruptions.granted("uid-a", 0.0)
    assert mirror.freed == ["default"]
    assert mirror.take("b") == ["b"]


def test_an_eviction_that_no_mirror_ever_shows_counts_for_a_minute() -> None:
    mirror = Mirror(budget("b", allowed=1, healthy=0))
    mirror.take("a", ask=True)
    assert mirror.wait("b", 0.0) is None  # the answer will tell
    mirror.disruptions.granted("uid-a", 5.0)
    assert mirror.take("b", 64.9) == []
    assert mirror.wait("b", 5.0) == 60.0
    assert mirror.take("b", 65.0) == ["b"]
    assert not mirror.disruptions.statistics()


def test_a_request_that_came_to_nothing_frees_its_allowance_and_tells_the_others() -> None:
    mirror = Mirror(budget("b", allowed=1, healthy=0))
    mirror.take("a", ask=True)
    assert mirror.take("b") == []
    mirror.disruptions.released("uid-a")
    assert mirror.freed == ["default"]
    assert mirror.take("b") == ["b"]


def test_a_pod_is_asked_again_in_spite_of_its_own_lost_answer() -> None:
    mirror = Mirror(budget("b", allowed=1, healthy=0))
    mirror.take("a", ask=True)
    mirror.disruptions.granted("uid-a", 0.0)
    assert mirror.take("a", 20.0) == ["a"]
    assert mirror.take("b", 20.0) == []


def test_a_version_that_the_server_refused_is_asked_by_nobody_for_a_while() -> None:
    mirror = Mirror(budget("b", allowed=3, healthy=0, version="1"))
    mirror.take("a", ask=True)
    mirror.disruptions.refused("uid-a", 0.0)
    assert mirror.take("abc", 1.0) == []
    wait = mirror.wait("b", 1.0)
    assert wait is not None and 13.0 <= wait <= 19.0
    assert mirror.take("abc", 20.0, ask=True) == ["a", "b", "c"]
    mirror.disruptions.refused("uid-a", 20.0)
    again = mirror.wait("b", 20.0)
    assert again is not None and 30.0 <= again <= 40.0
    mirror.disruptions.released("uid-b")
    mirror.disruptions.released("uid-c")
    mirror.show(budget("b", allowed=1, healthy=0, version="2"))
    assert mirror.take("abc", 21.0) == ["a"]


def test_the_servers_own_wish_to_be_left_alone_is_obeyed() -> None:
    mirror = Mirror(budget("b", allowed=1, healthy=0))
    mirror.take("a", ask=True)
    mirror.disruptions.refused("uid-a", 0.0, retry_after=90.0)
    assert mirror.wait("a", 0.0) == 90.0


def test_of_a_status_that_is_not_of_the_spec_nothing_is_concluded_one_pod_asks() -> None:
    behind = budget("b", allowed=3, healthy=0, generation=2, observed=1)
    mirror = Mirror(behind)
    assert mirror.take("abc", ask=True) == ["a"]
    mirror.disruptions.refused("uid-a", 0.0, retry_after=10.0)
    assert mirror.take("abc", 5.0) == []
    assert mirror.take("abc", 20.0) == ["a"]


def test_a_mirror_that_may_be_old_makes_one_pod_ask_whatever_it_shows() -> None:
    for shown in (budget("b"), budget("b", allowed=5)):
        mirror = Mirror(shown)
        assert mirror.take("abc", observed=False) == ["a"]
    two = Mirror(budget("b"), budget("c"))
    assert two.take("ab", observed=False) == ["a"]


def test_a_misconfigured_budget_and_several_are_not_asked() -> None:
    assert Mirror(budget("b")).take("ab") == []
    assert Mirror(budget("b"), budget("c", allowed=1)).take("ab") == []
    assert Mirror(budget("b", allowed=1), budget("c", allowed=1)).take("ab") == []
    assert Mirror(budget("b")).wait("a", 0.0) is None


def test_where_no_server_checks_several_budgets_must_agree_and_only_the_certain_counts() -> None:
    both = Mirror(budget("b", allowed=1, healthy=0), budget("c", allowed=2, healthy=0))
    assert both.take("abc", checked=False) == ["a"]
    one = Mirror(budget("b", allowed=1, healthy=0), budget("c", healthy=0))
    assert one.take("abc", checked=False) == []
    behind = Mirror(budget("b", allowed=3, generation=2, observed=1))
    assert behind.take("abc", checked=False) == []
    old = Mirror(budget("b", allowed=3))
    assert old.take("abc", checked=False, observed=False) == []


def test_a_pod_that_needs_no_leave_uses_nothing_up() -> None:
    mirror = Mirror(budget("b", allowed=1, healthy=0))
    broken = pod("x", phase="Pending")
    allowances = Allowances(mirror.disruptions, now=0.0)
    view = view_for(broken, mirror.budgets.values())
    assert allowances.take(broken, view)
    mirror.disruptions.asked(broken, view)
    assert mirror.take("a") == ["a"]


def test_an_earlier_pod_of_the_same_name_does_not_hide_the_one_under_way() -> None:
    left_over = budget("b", allowed=1, healthy=0, version="1", disrupted={"a": "earlier"})
    mirror = Mirror(left_over)
    mirror.take("a", ask=True)
    mirror.disruptions.granted("uid-a", 0.0)
    mirror.show(budget("b", allowed=1, healthy=0, version="2", disrupted={"a": "earlier"}))
    assert mirror.take("b") == []
    mirror.show(budget("b", allowed=1, healthy=0, version="3", disrupted={"a": "now"}))
    assert mirror.take("b") == ["b"]


def test_nothing_is_remembered_of_a_budget_that_is_gone() -> None:
    mirror = Mirror(budget("b", allowed=2, healthy=0))
    mirror.take("ab", ask=True)
    mirror.disruptions.granted("uid-a", 0.0)
    mirror.disruptions.refused("uid-b", 0.0)
    del mirror.budgets["default/b"]
    mirror.disruptions.budget_changed("default/b", None)
    assert not mirror.disruptions.statistics()
    mirror.show(budget("b", allowed=1, healthy=0))
    assert mirror.take("c") == ["c"]


def test_a_hundred_drains_behind_one_disruption_send_one_request_each_time_one_is_free() -> None:
    world = World([[f"p{i}"] for i in range(100)], needed=99)
    for round_ in range(1, 6):
        for drain in range(100):
            world.drain(drain)
        assert world.asked == round_
        world.answer(0)
        for drain in range(100):
            world.drain(drain)
        assert world.asked == round_
        world.deliver_everything()
        world.end_pod(0)
        world.recount()
        world.deliver_everything()
    assert not world.unexcused
