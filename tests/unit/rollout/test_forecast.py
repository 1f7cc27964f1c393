"""Which steps are forecast, and where they end."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcm.api.machine import DeploymentStrategy, InPlaceUpdate, MachinePhase, RollbackConfig
from mcm.api.names import (
    ANNOTATION_REPLICA_CHANGE_BY_SCALER,
    ANNOTATION_REVISION,
    ANNOTATION_SURGE_POOL,
    ANNOTATION_TRIGGER_DELETION,
    LABEL_FREEZE,
)
from mcm.api.timestamps import rfc3339
from mcm.rollout.forecast import Deletion, Forecast, Outcome, Step
from mcm.rollout.model import Resize, Wait
from tests.unit.deployment.fleet_model import FleetModel, Number, rolling

RECREATE = DeploymentStrategy(type="Recreate")
OLD = "set-1"


def settled(replicas: int, strategy: DeploymentStrategy) -> FleetModel:
    model = FleetModel(replicas, strategy)
    model.finish()
    return model


def forecast_of(model: FleetModel, *, new_machines_fail: bool = False) -> Forecast:
    return Forecast(model.snapshot(), model.now, new_machines_fail=new_machines_fail)


def shapes(steps: list[Step]) -> list[tuple[int, int]]:
    """Sizes of the old set and of the new one after each step."""
    old, new, states = None, 0, []
    for step in steps:
        for resize in step.sizes:
            if resize.set == OLD:
                old = resize.after
            else:
                new = resize.after
        states.append((old, new))
    first = next(r.before for s in steps for r in s.sizes if r.set == OLD)
    return [(first if o is None else o, n) for o, n in states]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("replicas", "strategy", "expected"),
    [
        (3, rolling(1, 0), [(3, 1), (2, 1), (2, 2), (1, 2), (1, 3), (0, 3)]),
        (2, rolling(0, 1), [(2, 0), (1, 0), (1, 1), (0, 1), (0, 2)]),
        (2, rolling(0, 0), [(2, 0), (1, 0), (1, 1), (0, 1), (0, 2)]),
        (3, rolling(3, 0), [(3, 3), (0, 3)]),
        (3, rolling("100%", "100%"), [(3, 3), (0, 3)]),
        (10, rolling(3, 2), [(10, 3), (8, 3), (8, 5), (5, 5), (5, 8), (3, 8), (3, 10), (0, 10)]),
        (3, RECREATE, [(0, 0), (0, 3)]),
    ],
)
def test_the_sizes_after_each_step_of_an_update(
    replicas: int, strategy: DeploymentStrategy, expected: list[tuple[int, int]]
) -> None:
    model = settled(replicas, strategy)
    model.user_updates(1)
    forecast = forecast_of(model)
    assert shapes(list(forecast.steps())) == expected
    assert forecast.ending().outcome is Outcome.COMPLETE


def test_a_step_names_who_goes_and_what_is_waited_for() -> None:
    model = settled(3, rolling(1, 0))
    model.user_updates(1)
    first, second, *_ = forecast_of(model).steps()
    (created,) = first.sizes
    assert (created.before, created.after) == (None, 1)
    assert (first.creates, first.deletes) == ({created.set: 1}, ())
    assert (first.machines, first.serving, first.wait) == (4, 3, Wait(coming=1))
    assert second.sizes == (Resize(OLD, 3, 2),)
    assert second.deletes == (Deletion(OLD, ("machine-000003",)),)
    assert (second.machines, second.serving, second.wait) == (4, 3, Wait(going=1))


def test_every_machine_that_exists_is_named_once_and_no_other() -> None:
    model = settled(2, rolling(2, 0))
    model.user_updates(1)
    steps = forecast_of(model).steps()
    names = [name for step in steps for deletion in step.deletes for name in deletion.names]
    assert sorted(names) == sorted(model.machines)


def test_nothing_is_forecast_where_nothing_is_to_be_done() -> None:
    forecast = forecast_of(settled(3, rolling(1, 1)))
    assert list(forecast.steps()) == []
    assert forecast.ending().outcome is Outcome.COMPLETE


def test_a_scale_down_names_the_machines_in_the_order_of_deletion() -> None:
    model = settled(3, rolling(1, 1))
    chosen = sorted(model.machines)[2]
    model.user_prefers(chosen)
    model.user_scales(1)
    (step,) = forecast_of(model).steps()
    assert step.sizes == (Resize(OLD, 3, 1),)
    assert step.deletes[0].names[0] == chosen
    assert len(step.deletes[0].names) == 2


def test_the_machines_that_the_autoscaler_lists_go() -> None:
    model = settled(3, rolling(1, 1))
    listed, time = sorted(model.machines)[1], rfc3339(model.now)
    annotations = {
        ANNOTATION_TRIGGER_DELETION: f"{listed}~{time}",
        ANNOTATION_REPLICA_CHANGE_BY_SCALER: time,
    }
    model.user_scales(2)
    meta = msgspec.structs.replace(model.deployment.metadata, annotations=annotations)
    model.deployment = msgspec.structs.replace(model.deployment, metadata=meta)
    (step,) = forecast_of(model).steps()
    assert step.deletes == (Deletion(OLD, (listed,)),)


def test_a_failed_machine_is_replaced_without_any_set_changing_its_size() -> None:
    model = settled(2, rolling(1, 1))
    failed = sorted(model.machines)[0]
    model._enter(failed, MachinePhase.FAILED)
    (step,) = forecast_of(model).steps()
    assert step.sizes == ()
    assert step.deletes == (Deletion(OLD, (failed,)),)
    assert step.creates == {OLD: 1}
    assert step.wait == Wait(coming=1, going=1)


def test_new_machines_that_fail_stop_an_update_before_it_costs_more_than_it_may() -> None:
    model = settled(3, rolling(1, 1))
    model.user_updates(1)
    forecast = forecast_of(model, new_machines_fail=True)
    assert min(step.serving for step in forecast.steps()) == 2
    ending = forecast.ending()
    assert ending.outcome is Outcome.STUCK
    assert ending.reasons[:2] == (
        "no machine may be added: there may be 4, and there are 4",
        "none that serves may go: 2 must serve, and 2 do",
    )
    assert all("does not serve: Pending" in reason for reason in ending.reasons[2:])


def test_a_broken_machine_is_named_with_its_own_error() -> None:
    model = settled(2, rolling(1, 0))
    model.user_updates(1)
    model.deployment_acts()
    model.converge()
    new = next(m for m in model.machines.values() if m.metadata.labels["set"] != OLD)
    operation = msgspec.structs.replace(
        new.status.last_operation, description="no quota\nleft", error_code="ResourceExhausted"
    )
    model._enter(new.metadata.name, MachinePhase.CRASH_LOOP_BACK_OFF)
    broken = model.machines[new.metadata.name]
    status = msgspec.structs.replace(broken.status, last_operation=operation)
    model.machines[new.metadata.name] = msgspec.structs.replace(broken, status=status)
    forecast = forecast_of(model)
    list(forecast.steps())
    ending = forecast.ending()
    assert ending.outcome is Outcome.STUCK
    assert any("fails to get its machines up" in reason for reason in ending.reasons)
    assert ending.reasons[-1] == (
        f"{new.metadata.name} does not serve: CrashLoopBackOff [ResourceExhausted]: no quota left"
    )


def test_a_paused_deployment_only_changes_its_size() -> None:
    model = settled(3, rolling(1, 0))
    model.user_updates(1)
    model.user_pauses(paused=True)
    model.user_scales(2)
    forecast = forecast_of(model)
    assert [step.sizes for step in forecast.steps()] == [(Resize(OLD, 3, 2),)]
    assert forecast.ending().outcome is Outcome.PAUSED


def test_a_frozen_set_makes_no_machines_and_the_forecast_says_so() -> None:
    model = settled(2, rolling(1, 0))
    meta = model.sets[OLD].metadata
    meta = msgspec.structs.replace(meta, labels={LABEL_FREEZE: "True"})
    model.sets[OLD] = msgspec.structs.replace(model.sets[OLD], metadata=meta)
    model.user_scales(4)
    forecast = forecast_of(model)
    (step,) = forecast.steps()
    assert (step.creates, step.machines) == ({}, 2)
    ending = forecast.ending()
    assert ending.outcome is Outcome.FROZEN
    assert ending.reasons == (f"{OLD}: the set is frozen",)


def test_a_rollback_is_the_first_step_of_what_follows() -> None:
    model = settled(2, rolling(1, 0))
    _number(model, OLD, 1)
    model.user_updates(1)
    model.deployment_acts()
    model.converge()
    new = next(uid for uid in model.sets if uid != OLD)
    _number(model, new, 2)
    model._change(rollback_to=RollbackConfig(revision=1))
    forecast = forecast_of(model)
    steps = list(forecast.steps())
    assert steps[0].note == "Rolled back to revision 1"
    assert forecast.snapshot.new is not None
    assert forecast.snapshot.new.metadata.name == OLD
    assert forecast.ending().outcome is Outcome.COMPLETE


def _number(model: FleetModel, uid: str, revision: int) -> None:
    meta = model.sets[uid].metadata
    annotations = {**meta.annotations, ANNOTATION_REVISION: str(revision)}
    meta = msgspec.structs.replace(meta, annotations=annotations)
    model.sets[uid] = msgspec.structs.replace(model.sets[uid], metadata=meta)


def test_new_machines_are_waited_for_until_they_have_served_for_long_enough() -> None:
    model = settled(1, rolling(1, 0))
    model.user_updates(1)
    model._change(min_ready_seconds=3600)
    forecast = forecast_of(model)
    steps = list(forecast.steps())
    assert forecast.ending().outcome is Outcome.COMPLETE
    assert [step.wait for step in steps] == [Wait(coming=1), Wait(going=1)]


def test_old_sets_beyond_the_history_are_named_at_the_end() -> None:
    model = settled(1, rolling(1, 0))
    model.user_updates(1)
    model._change(revision_history_limit=0)
    forecast = forecast_of(model)
    list(forecast.steps())
    assert forecast.ending().removed == (OLD,)


NUMBERS: st.SearchStrategy[Number] = st.one_of(
    st.integers(0, 4), st.sampled_from(["0%", "25%", "50%", "100%"])
)
STRATEGIES = st.one_of(st.builds(rolling, NUMBERS, NUMBERS), st.just(RECREATE))


@settings(max_examples=120, deadline=None, derandomize=True)
@given(st.integers(0, 9), st.integers(0, 9), STRATEGIES, st.booleans(), st.integers(0, 6))
def test_every_forecast_ends_within_the_bounds_and_changes_nothing(
    before: int, after: int, strategy: DeploymentStrategy, failing: bool, passes: int
) -> None:
    """Begun anywhere: in the middle of an update, after a change of mind, of the size, too."""
    model = settled(before, strategy)
    model.user_updates(1)
    for _ in range(passes):
        model.deployment_acts()
        model.converge()
    model.user_scales(after)
    model.user_updates(passes % 3)
    sets, machines = dict(model.sets), dict(model.machines)
    first = len(machines)
    forecast = forecast_of(model, new_machines_fail=failing)
    for number, step in enumerate(forecast.steps()):
        assert number < 100
        assert step.machines <= max(model.bounds.most, first)
        assert 0 <= step.serving <= step.machines
    assert (sets, machines) == (model.sets, model.machines)
    if not failing:
        assert forecast.ending().outcome is Outcome.COMPLETE
        fleet = forecast.snapshot.fleet(model.now + timedelta(days=1))
        assert fleet.guaranteed() == fleet.replicas() == after


# ---- machines that are kept, and pools -----------------------------------------------------------


@pytest.mark.parametrize(("most", "replaced"), [(0, 2), (1, 1), (2, 0)])
def test_failed_machines_that_a_set_keeps_unasked_are_not_replaced(
    most: int, replaced: int
) -> None:
    model = settled(3, rolling(1, 1))
    model._change(auto_preserve_failed_machine_max=most)
    model.deployment_acts()
    for name in sorted(model.machines)[:2]:
        model._enter(name, MachinePhase.FAILED)
    forecast = forecast_of(model)
    assert sum(len(d.names) for step in forecast.steps() for d in step.deletes) == replaced


def member(name: str, strategy: DeploymentStrategy) -> FleetModel:
    model = settled(2, strategy)
    meta = msgspec.structs.replace(
        model.deployment.metadata, name=name, annotations={ANNOTATION_SURGE_POOL: "zones"}
    )
    model.deployment = msgspec.structs.replace(model.deployment, metadata=meta)
    return model


def test_the_members_of_a_pool_share_its_budget() -> None:
    me, other, stranger = (member(name, rolling(1, 0)) for name in ("a", "b", "c"))
    meta = msgspec.structs.replace(stranger.deployment.metadata, annotations={})
    stranger.deployment = msgspec.structs.replace(stranger.deployment, metadata=meta)
    me.user_updates(1)
    idle = Forecast(me.snapshot(), me.now, others=[other.snapshot(), stranger.snapshot()])
    assert idle.pool.members == ("b",)
    assert len(list(idle.steps())) == 4
    assert idle.ending().outcome is Outcome.COMPLETE
    other.user_updates(1)
    other.deployment_acts()
    other.converge()
    behind = Forecast(me.snapshot(), me.now, others=[other.snapshot(), stranger.snapshot()])
    assert [step.machines for step in behind.steps()] == [2]  # the new set, without machines
    ending = behind.ending()
    assert ending.outcome is Outcome.STUCK
    assert ending.reasons[0] == "it shares surge pool zones, of which these take their part: b"


# ---- updates in place ----------------------------------------------------------------------------


def in_place(surge: Number, unavailable: Number, *, by: str = "Auto") -> DeploymentStrategy:
    block = InPlaceUpdate(max_surge=surge, max_unavailable=unavailable, orchestration_type=by)
    return DeploymentStrategy(type="InPlaceUpdate", in_place_update=block)


@pytest.mark.parametrize(
    ("surge", "unavailable", "at_once", "deleted", "least"),
    [(0, 1, [1, 1, 1, 1], 0, 3), (0, 2, [2, 2], 0, 2), (1, 0, [1, 1, 1], 1, 4), (0, 4, [4], 0, 0)],
)
def test_machines_are_updated_in_place_within_the_limits(
    surge: int, unavailable: int, at_once: list[int], deleted: int, least: int
) -> None:
    model = settled(4, in_place(surge, unavailable))
    model.user_updates(1)
    forecast = forecast_of(model)
    steps = list(forecast.steps())
    assert forecast.ending().outcome is Outcome.COMPLETE
    turns = [step for step in steps if step.selects]
    assert [len(step.selects) for step in turns] == at_once
    assert [step.wait.updating for step in turns if step.wait] == at_once
    assert sum(len(d.names) for step in steps for d in step.deletes) == deleted
    assert min(step.serving for step in steps) == least
    kept = {m.metadata.name for owned in forecast.snapshot.machines.values() for m in owned}
    assert len(kept & model.machines.keys()) == 4 - deleted


def test_people_who_select_are_told_whom_they_may() -> None:
    model = settled(2, in_place(0, 1, by="Manual"))
    model.user_updates(1)
    forecast = forecast_of(model)
    assert [step.selects for step in forecast.steps()] == [()]
    ending = forecast.ending()
    assert ending.outcome is Outcome.MANUAL
    assert all(name in ending.reasons[0] for name in model.machines)


def test_updates_in_place_that_never_end_cost_no_more_than_they_may() -> None:
    model = settled(4, in_place(0, 1))
    model.user_updates(1)
    forecast = forecast_of(model, new_machines_fail=True)
    assert [len(step.selects) for step in forecast.steps() if step.selects] == [1]
    assert forecast.ending().outcome is Outcome.STUCK


def test_a_machine_in_the_middle_of_its_update_is_waited_for() -> None:
    model = settled(2, in_place(0, 1))
    model.user_updates(1)
    model.deployment_acts()
    model._enter(sorted(model.machines)[0], MachinePhase.IN_PLACE_UPDATING)
    first, *_ = (step for step in forecast_of(model).steps() if step.wait)
    assert first.wait == Wait(updating=1)
    assert first.serving == 1
