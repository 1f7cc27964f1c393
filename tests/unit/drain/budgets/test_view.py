from __future__ import annotations

import pytest

from mcm.api.meta import LabelSelector
from mcm.drain.budgets import BudgetView, is_misconfigured, view_for
from tests.unit.drain.pods import budget, pod

APP = LabelSelector(match_labels={"app": "a"})


def obstacle_text(view: BudgetView) -> str:
    assert view.obstacle is not None
    return view.obstacle.text


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
    text = obstacle_text(view)
    assert "default/strict is misconfigured and requires zero voluntary evictions" in text
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
    assert "default/a, default/b" in obstacle_text(view)
    assert view.allows


def test_without_budgets_nothing_is_in_the_way() -> None:
    view = view_for(pod("p"), [])
    assert view.allows and not view.obstacle and not view.versions
