from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Pod, PodDisruptionBudget
from mcm.api.meta import LabelSelector, LabelSelectorRequirement
from mcm.drain.budgets import ObstacleKind, view_for
from tests.unit.drain.pods import NOW, budget, pod

PHRASE = "is misconfigured and requires zero voluntary evictions"


def of(
    source: PodDisruptionBudget,
    *,
    max_unavailable: int | str | None = None,
    min_available: int | str | None = None,
    policy: str = "",
    desired: int | None = None,
) -> PodDisruptionBudget:
    spec = msgspec.structs.replace(
        source.spec,
        max_unavailable=max_unavailable,
        min_available=min_available,
        unhealthy_pod_eviction_policy=policy,
    )
    status = source.status
    if desired is not None:
        status = msgspec.structs.replace(status, desired_healthy=desired)
    return msgspec.structs.replace(source, spec=spec, status=status)


@pytest.mark.parametrize(
    ("subject", "protecting", "needs"),
    [
        (pod("ready"), budget("b"), True),
        (pod("pending", phase="Pending"), budget("b"), False),
        (pod("done", phase="Succeeded"), budget("b"), False),
        (pod("failed", phase="Failed"), budget("b"), False),
        (pod("going", deleted=NOW), budget("b"), False),
        (pod("unknown", phase="Unknown"), budget("b"), True),
        (pod("broken", ready=False), budget("b", healthy=1), False),
        (pod("broken", ready=False), of(budget("b", healthy=1), desired=2), True),
        (pod("broken", ready=False), of(budget("b", healthy=0), desired=0), True),
        (
            pod("broken", ready=False),
            of(budget("b", healthy=1), desired=2, policy="IfHealthyBudget"),
            True,
        ),
        (
            pod("broken", ready=False),
            of(budget("b", healthy=0), desired=2, policy="AlwaysAllow"),
            False,
        ),
        (pod("ready"), of(budget("b"), policy="AlwaysAllow"), True),
        # The server looks at these numbers even if they are of an older spec.
        (pod("broken", ready=False), budget("b", healthy=1, generation=2), False),
    ],
    ids=lambda value: value.metadata.name if isinstance(value, Pod) else None,
)
def test_whether_a_pod_needs_an_allowance_follows_the_servers_rules(
    subject: Pod, protecting: PodDisruptionBudget, *, needs: bool
) -> None:
    view = view_for(subject, [protecting])
    assert view.needs_allowance is needs
    if not needs:
        assert view.obstacle is None and view.allows and not view.why_held


def test_of_two_budgets_the_server_does_not_ask_the_policy() -> None:
    free = of(budget("a", healthy=1, allowed=1), policy="AlwaysAllow")
    view = view_for(pod("broken", ready=False), [free, budget("b", allowed=1)])
    assert view.obstacle is not None
    assert view.obstacle.kind is ObstacleKind.SEVERAL_BUDGETS
    assert view_for(pod("pending", phase="Pending"), [free, budget("b")]).obstacle is None


@pytest.mark.parametrize(
    ("suspect", "why"),
    [
        (of(budget("b"), max_unavailable=0), "maxUnavailable is 0"),
        (of(budget("b", healthy=0, expected=3), max_unavailable="0%"), "maxUnavailable is 0%"),
        (of(budget("b", healthy=0, expected=3), min_available="100%"), "minAvailable is 100%"),
        (of(budget("b", healthy=2, expected=3), min_available=3), "it has 3 pods"),
        (of(budget("b", healthy=2, expected=3), min_available=7), "minAvailable is 7"),
        # Percentages round up: 99% of 3 pods are 3.
        (of(budget("b", healthy=0, expected=3), min_available="99%"), "minAvailable is 99%"),
        (of(budget("b", healthy=3, expected=3), min_available=2, desired=3), "all 3 of its pods"),
    ],
)
def test_a_budget_that_can_never_allow_anything_is_named_with_what_mends_it(
    suspect: PodDisruptionBudget, why: str
) -> None:
    obstacle = view_for(pod("p"), [suspect]).obstacle
    assert obstacle is not None
    assert obstacle.kind is ObstacleKind.MISCONFIGURED
    assert obstacle.text.startswith(f"pod disruption budget default/b {PHRASE}: ")
    assert why in obstacle.text
    assert any(word in obstacle.text for word in ("raise", "lower"))


@pytest.mark.parametrize(
    "fine",
    [
        of(budget("b", healthy=0, expected=3), max_unavailable=1),
        of(budget("b", healthy=0, expected=3), max_unavailable="1%"),
        of(budget("b", healthy=0, expected=3), min_available=2),
        of(budget("b", healthy=0, expected=3), min_available="66%"),
        of(budget("b", healthy=0, expected=0), min_available=1),
        of(budget("b", healthy=0, expected=3), min_available="nonsense%"),
        of(budget("b", healthy=0, expected=3), max_unavailable="nonsense"),
        # A rollout's surge gives it something to allow, whatever its spec.
        of(budget("b", healthy=4, expected=3, allowed=1), max_unavailable=0),
        # Of a status that is not of the spec, nothing is concluded.
        of(budget("b", generation=2), max_unavailable=0),
        of(budget("b", generation=2), min_available="100%"),
    ],
)
def test_a_budget_that_may_allow_something_some_time_is_no_obstacle(
    fine: PodDisruptionBudget,
) -> None:
    assert view_for(pod("p"), [fine]).obstacle is None


def test_several_budgets_of_which_one_is_misconfigured_are_told_together() -> None:
    strict, other = of(budget("strict"), max_unavailable=0), budget("other", allowed=1)
    obstacle = view_for(pod("p"), [strict, other]).obstacle
    assert obstacle is not None
    assert obstacle.kind is ObstacleKind.MISCONFIGURED
    assert f"default/strict {PHRASE}" in obstacle.text
    assert "default/other, default/strict" in obstacle.text


def test_a_budget_whose_selector_is_invalid_is_ignored_and_named() -> None:
    wrong: dict[str, LabelSelector] = {
        "operator": LabelSelector(
            match_expressions=(LabelSelectorRequirement(key="app", operator="Is", values=("a",)),)
        ),
        "values": LabelSelector(
            match_expressions=(LabelSelectorRequirement(key="app", operator="NotIn"),)
        ),
        "key": LabelSelector(
            match_expressions=(LabelSelectorRequirement(key="a b", operator="DoesNotExist"),)
        ),
        "value": LabelSelector(
            match_expressions=(
                LabelSelectorRequirement(key="app", operator="NotIn", values=("a b",)),
            )
        ),
        "label": LabelSelector(match_labels={"app": "a b"}),
        "labelkey": LabelSelector(match_labels={"a b": "a"}),
    }
    budgets = [budget(name, selector=selector) for name, selector in wrong.items()]
    view = view_for(pod("p", labels={"app": "a b"}), budgets)
    assert view.budgets == () and view.allows
    assert [text.partition(":")[0] for text in view.ignored] == sorted(
        f"default/{name}" for name in wrong
    )


def test_what_holds_a_pod_is_told_with_its_numbers() -> None:
    held = of(budget("b", healthy=1, expected=3), max_unavailable=1, desired=2)
    assert view_for(pod("p"), [held]).why_held == (
        "held back by pod disruption budget default/b (allows 0 disruptions: 1 healthy pods, "
        "2 needed)"
    )
    behind = budget("b", generation=2)
    assert "not yet of its spec" in view_for(pod("p"), [behind]).why_held
    assert view_for(pod("p"), [behind]).unprocessed


_numbers = st.one_of(st.none(), st.integers(0, 5), st.sampled_from(["0%", "50%", "100%", "x"]))


@given(
    st.lists(
        st.builds(
            lambda name, most, least, allowed, healthy, expected, generation: of(
                budget(
                    name,
                    allowed=allowed,
                    healthy=healthy,
                    expected=expected,
                    generation=generation,
                ),
                max_unavailable=most,
                min_available=least,
            ),
            st.sampled_from(["a", "b", "c"]),
            _numbers,
            _numbers,
            st.integers(-1, 3),
            st.integers(0, 5),
            st.integers(0, 5),
            st.integers(1, 2),
        ),
        max_size=3,
        unique_by=lambda b: b.metadata.name,
    ),
    st.booleans(),
    st.sampled_from(["Running", "Pending", "Succeeded", "Unknown", ""]),
)
def test_a_view_never_contradicts_itself(
    budgets: list[PodDisruptionBudget], ready: bool, phase: str
) -> None:
    view = view_for(pod("p", ready=ready, phase=phase), budgets)
    if view.obstacle is not None:
        assert view.needs_allowance and all(name in view.obstacle.text for name in view.names[:1])
        assert len(budgets) > 1 or not view.allows
    if not view.needs_allowance:
        assert view.allows and not view.why_held
    if len(budgets) > 1 and view.needs_allowance:
        assert view.obstacle is not None
    if view.unprocessed:
        assert not view.allows
