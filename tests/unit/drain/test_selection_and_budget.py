from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.core import Pod
from mcm.api.meta import LabelSelector
from mcm.drain import Treatment, is_misconfigured, select, treatment_of, view_for
from mcm.drain.selection import claims_of
from tests.unit.drain.pods import NOW, budget, pod

APP = LabelSelector(match_labels={"app": "a"})


@pytest.mark.parametrize(
    ("subject", "treatment"),
    [
        (pod("plain"), Treatment.PARALLEL),
        (pod("unmanaged", owner=""), Treatment.PARALLEL),
        (pod("leaving", deleted=NOW), Treatment.PARALLEL),
        (pod("volume", claims=("data",)), Treatment.SERIAL),
        (pod("scratch", ephemeral=("cache",)), Treatment.SERIAL),
        (pod("job", claims=("data",), phase="Succeeded"), Treatment.PARALLEL),
        (pod("crashed", claims=("data",), phase="Failed"), Treatment.PARALLEL),
        (pod("static", mirror=True), Treatment.LEAVE),
        (pod("agent", owner="DaemonSet"), Treatment.LEAVE),
        (pod("agent-done", owner="DaemonSet", phase="Succeeded"), Treatment.LEAVE),
        (pod("agent-volume", owner="DaemonSet", claims=("data",)), Treatment.LEAVE),
    ],
    ids=lambda value: value.metadata.name if isinstance(value, Pod) else str(value),
)
def test_each_kind_of_pod_has_its_treatment(subject: Pod, treatment: Treatment) -> None:
    assert treatment_of(subject) is treatment


def test_pods_with_volumes_go_by_priority_highest_first_then_by_name() -> None:
    chosen = select(
        [
            pod("b", claims=("x",)),
            pod("low", claims=("x",), priority=-5),
            pod("a", claims=("x",)),
            pod("high", claims=("x",), priority=100),
        ]
    )
    assert [p.metadata.name for p in chosen.serial] == ["high", "a", "b", "low"]


def test_claims_count_those_that_ephemeral_volumes_make() -> None:
    assert claims_of(pod("p", claims=("data",), ephemeral=("cache",))) == ("data", "p-cache")


@given(
    st.lists(
        st.builds(
            pod,
            st.from_regex(r"[a-z]{1,5}", fullmatch=True),
            claims=st.sampled_from([(), ("c",)]),
            mirror=st.booleans(),
            owner=st.sampled_from(["", "ReplicaSet", "DaemonSet"]),
            phase=st.sampled_from(["Running", "Succeeded", "Pending"]),
        ),
        max_size=12,
    )
)
def test_every_pod_is_in_exactly_one_group(pods: list[Pod]) -> None:
    chosen = select(pods)
    assert sorted(map(id, (*chosen.taken, *chosen.left))) == sorted(map(id, pods))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"healthy": 3, "expected": 2}, True),
        ({"allowed": 1}, False),
        ({"healthy": 0}, False),
        ({"expected": 0, "healthy": 0}, False),
        ({"observed": 0}, False),
        ({"disrupted": {"p": "2026-01-01T00:00:00Z"}}, False),
    ],
)
def test_a_budget_is_misconfigured_only_if_it_refuses_while_all_its_pods_are_well(
    changes: dict[str, int], *, expected: bool
) -> None:
    assert is_misconfigured(budget("b", **changes)) is expected  # type: ignore[arg-type]


def test_the_obstacle_names_the_budget_before_the_phrase_that_others_look_for() -> None:
    view = view_for(pod("p", labels={"app": "a"}), [budget("strict", selector=APP)])
    assert "default/strict is misconfigured and requires zero voluntary evictions" in view.obstacle
    assert not view.allows


def test_only_budgets_that_select_the_pod_count_and_an_empty_selector_selects_all() -> None:
    subject = pod("p", labels={"app": "b"})
    budgets = [
        budget("other", selector=APP),
        budget("nobody", selector=None),
        budget("all", allowed=1),
    ]
    view = view_for(subject, budgets)
    assert view.names == ("default/all",)
    assert view.allows and not view.obstacle


def test_two_budgets_are_an_obstacle_that_names_both() -> None:
    view = view_for(pod("p"), [budget("b", allowed=1), budget("a", allowed=1)])
    assert "default/a, default/b" in view.obstacle
    assert view.allows


def test_without_budgets_nothing_is_in_the_way() -> None:
    view = view_for(pod("p"), [])
    assert view.allows and not view.obstacle and not view.versions
