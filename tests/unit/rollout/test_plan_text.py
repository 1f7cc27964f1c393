"""A plan as it is printed."""

from __future__ import annotations

from mcm.rollout.forecast import Ending, Forecast, Outcome
from mcm.rollout.plan_text import Plan, plan_json, plan_text
from tests.unit.deployment.fleet_model import FleetModel, rolling

UPDATE = """\
machinedeployment ns/pool: 2 machines, RollingUpdate
at most 3 may exist, at least 2 must serve

SET    REVISION  CLASS    REPLICAS  MACHINES  TEMPLATE
set-1  1         class-0  2         2         former

STEP  MACHINES  SERVING  WHAT
   1         3        2  pool-dhv94 is made, with 1
                         wait for 1 machine to serve
   2         3        2  set-1 2 → 1
                           delete machine-000003
                         wait for 1 machine to be gone
   3         3        2  pool-dhv94 1 → 2
                         wait for 1 machine to serve
   4         3        2  set-1 1 → 0
                           delete machine-000004
                         wait for 1 machine to be gone

Complete after 4 steps.
"""


def plan_of(model: FleetModel, *, shown: int | None = None) -> Plan:
    seen = model.snapshot()
    forecast = Forecast(seen, model.now)
    steps = tuple(forecast.steps())
    return Plan(seen, steps[:shown], None if shown else forecast.ending())


def updating(replicas: int) -> FleetModel:
    model = FleetModel(replicas, rolling(1, 0))
    model.finish()
    model.user_updates(1)
    return model


def test_an_update_step_by_step() -> None:
    assert plan_text(plan_of(updating(2))) == UPDATE


def test_steps_that_are_not_shown_are_spoken_of() -> None:
    text = plan_text(plan_of(updating(2), shown=1))
    assert text.endswith("\n… and more after 1 step (--steps 0 shows all)\n")


def test_nothing_to_do_is_one_line() -> None:
    model = FleetModel(1, rolling(1, 0))
    model.finish()
    assert plan_text(plan_of(model)).endswith(
        "\n\nNothing to do: 1 machine of the present template\n"
    )


def test_what_is_being_waited_for_already_comes_first() -> None:
    model = updating(2)
    model.deployment_acts()
    for uid in model.sets:
        model.set_acts(uid)
    assert " now         3        2  wait for 1 machine to serve\n" in plan_text(plan_of(model))


def test_long_lists_of_machines_are_cut_and_lines_stay_narrow() -> None:
    model = FleetModel(20, rolling(20, 0))
    model.finish()
    model.user_updates(1)
    text = plan_text(plan_of(model))
    assert text.count("  delete machine-") == 5
    assert "  … and 15 more\n" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_why_it_ends_before_it_is_complete_stands_at_the_end() -> None:
    plan = plan_of(updating(2))
    stuck = Plan(plan.seen, (), Ending(Outcome.STUCK, ("one", "two")), warning="no class")
    text = plan_text(stuck)
    assert "\nWarning: no class\n\n" in text
    assert text.endswith("\n\nIt goes no further:\n  one\n  two\n")


def test_programs_read_the_same() -> None:
    shown = plan_json(plan_of(updating(1)))
    assert (shown["most"], shown["least"], shown["outcome"]) == (2, 1, "complete")
    assert shown["steps"] == [
        {
            "note": "",
            "sets": [{"name": "pool-dhv94", "before": None, "after": 1}],
            "creates": [{"set": "pool-dhv94", "machines": 1}],
            "deletes": [],
            "updatesInPlace": [],
            "machines": 2,
            "serving": 1,
            "wait": {"toServe": 1, "toBeGone": 0, "toBeUpdated": 0},
        },
        {
            "note": "",
            "sets": [{"name": "set-1", "before": 1, "after": 0}],
            "creates": [],
            "deletes": [{"set": "set-1", "machines": ["machine-000003"], "others": 0}],
            "updatesInPlace": [],
            "machines": 2,
            "serving": 1,
            "wait": {"toServe": 0, "toBeGone": 1, "toBeUpdated": 0},
        },
    ]
