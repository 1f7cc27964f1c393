"""A forecast as people read it, on 80 columns, and as programs do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, final

from mcm.api.defaulting import defaulted_strategy
from mcm.api.machine import MachineSet
from mcm.api.meta import JSONObject
from mcm.api.templates import class_of
from mcm.cluster_commands.tables import table
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.revisions.numbers import revision_of
from mcm.controllers.deployment.sizes.bounds import bounds_of
from mcm.rollout.forecast import Deletion, Ending, Outcome, Step
from mcm.rollout.model import Resize, Wait
from mcm.rollout.pool import Pool

_MOST_NAMES: Final = 5
_INDENT: Final = " " * 25


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """The steps to be shown; without an ``ending`` there are more of them. ``warning`` is what the
    controllers do not look at when they plan, and makes the plan fail."""

    seen: DeploymentSnapshot
    steps: Sequence[Step]
    ending: Ending | None
    warning: str = ""
    pool: Pool | None = None


def plan_text(plan: Plan) -> str:
    warning = [f"Warning: {plan.warning}"] if plan.warning else []
    return "\n".join([*_heading(plan), *warning, "", *_body(plan)]) + "\n"


def _heading(plan: Plan) -> Iterator[str]:
    seen, pool = plan.seen, plan.pool
    spec, meta = seen.deployment.spec, seen.deployment.metadata
    bounds = bounds_of(spec)
    paused = ", paused" if spec.paused else ""
    yield f"machinedeployment {meta.key}: {_count(spec.replicas)}, {_strategy(seen)}{paused}"
    yield f"at most {bounds.most} may exist, at least {bounds.least} must serve"
    if pool is not None and pool.members:
        yield f"surge pool {pool.name}, shared with {', '.join(pool.members)}, who stand still here"
    rows = [_row(seen, s) for s in seen.sets if _is_shown(seen, s)]
    if rows:
        yield ""
        yield from table(("SET", "REVISION", "CLASS", "REPLICAS", "MACHINES", "TEMPLATE"), rows)


def _strategy(seen: DeploymentSnapshot) -> str:
    return defaulted_strategy(seen.deployment.spec).type


def _is_shown(seen: DeploymentSnapshot, machine_set: MachineSet) -> bool:
    used = machine_set.spec.replicas or seen.machines[machine_set.metadata.uid]
    return bool(used) or machine_set is seen.new


def _row(seen: DeploymentSnapshot, machine_set: MachineSet) -> tuple[str, ...]:
    return (
        machine_set.metadata.name,
        str(revision_of(machine_set.metadata.annotations) or ""),
        class_of(machine_set.spec.template).name,
        str(machine_set.spec.replicas),
        str(len(seen.machines[machine_set.metadata.uid])),
        "present" if machine_set is seen.new else "former",
    )


# ---- steps ---------------------------------------------------------------------------------------


def _body(plan: Plan) -> Iterator[str]:
    if not plan.steps and plan.ending is not None and plan.ending.outcome is Outcome.COMPLETE:
        yield f"Nothing to do: {_count(plan.seen.deployment.spec.replicas)} of the present template"
        yield from _removals(plan.ending)
        return
    if plan.steps:
        yield "STEP  MACHINES  SERVING  WHAT"
    number = 0
    for step in plan.steps:
        lines = [*_what(step)]
        if lines:
            number += 1
            yield f"{number:>4}  {step.machines:>8}  {step.serving:>7}  {lines[0]}"
        else:
            yield f"{'now':>4}  {step.machines:>8}  {step.serving:>7}  {_waiting(step.wait)}"
            continue
        yield from (f"{_INDENT}{line}" for line in lines[1:])
        if step.wait is not None:
            yield f"{_INDENT}{_waiting(step.wait)}"
    yield from _end(plan, number)


def _what(step: Step) -> Iterator[str]:
    if step.note:
        yield step.note
    resized = {resize.set for resize in step.sizes}
    deletions = {d.set: d for d in step.deletes}
    for resize in step.sizes:
        yield _resizing(resize)
        if resize.set in deletions:
            yield from _deleting(deletions[resize.set])
    if step.selects:
        yield f"update {_count(len(step.selects))} in place"
        yield from _names("update", step.selects)
    for name, count in step.creates.items():
        if name not in resized:
            yield f"{name}: make {_count(count)}"
    for name, deletion in deletions.items():
        if name not in resized:
            yield f"{name}: replace or remove"
            yield from _deleting(deletion)


def _resizing(resize: Resize) -> str:
    if resize.before is None:
        return f"{resize.set} is made, with {resize.after}"
    return f"{resize.set} {resize.before} → {resize.after}"


def _deleting(deletion: Deletion) -> Iterator[str]:
    yield from _names("delete", deletion.names)
    if deletion.others:
        yield f"  delete {deletion.others} of those made here"


def _names(verb: str, names: Sequence[str]) -> Iterator[str]:
    for name in names[:_MOST_NAMES]:
        yield f"  {verb} {name}"
    if len(names) > _MOST_NAMES:
        yield f"  … and {len(names) - _MOST_NAMES} more"


def _waiting(wait: Wait | None) -> str:
    assert wait is not None
    parts = []
    if wait.coming:
        parts.append(f"{_count(wait.coming)} to serve")
    if wait.going:
        parts.append(f"{_count(wait.going)} to be gone")
    if wait.updating:
        parts.append(f"{_count(wait.updating)} to be updated")
    return f"wait for {' and '.join(parts)}"


def _end(plan: Plan, steps: int) -> Iterator[str]:
    after = f" after {steps} step{'s' if steps != 1 else ''}" if steps else ""
    if plan.steps:
        yield ""
    if plan.ending is None:
        yield f"… and more{after} (--steps 0 shows all)"
    elif plan.ending.outcome is Outcome.COMPLETE:
        yield f"Complete{after}."
        yield from _removals(plan.ending)
    else:
        yield f"It goes no further{after}:"
        yield from (f"  {reason}" for reason in plan.ending.reasons)


def _removals(ending: Ending) -> Iterator[str]:
    if ending.removed:
        yield f"Beyond revisionHistoryLimit, and deleted then: {', '.join(ending.removed)}"


def _count(number: int) -> str:
    return f"{number} machine{'s' if number != 1 else ''}"


# ---- JSON ----------------------------------------------------------------------------------------


def plan_json(plan: Plan) -> JSONObject:
    """Return the plan for programs; its fields are described in docs/rollout-commands.md."""
    seen, bounds = plan.seen, bounds_of(plan.seen.deployment.spec)
    ending, pool = plan.ending, plan.pool
    return {
        "deployment": seen.deployment.metadata.name,
        "namespace": seen.deployment.metadata.namespace,
        "strategy": _strategy(seen),
        "paused": seen.deployment.spec.paused,
        "replicas": bounds.desired,
        "most": bounds.most,
        "least": bounds.least,
        "sets": [
            {
                "name": s.metadata.name,
                "revision": revision_of(s.metadata.annotations),
                "class": class_of(s.spec.template).name,
                "replicas": s.spec.replicas,
                "machines": len(seen.machines[s.metadata.uid]),
                "present": s is seen.new,
            }
            for s in seen.sets
        ],
        "steps": [_step_json(step) for step in plan.steps],
        "surgePool": {"name": pool.name, "members": list(pool.members), "busy": list(pool.busy)}
        if pool is not None and pool.name
        else None,
        "warning": plan.warning or None,
        "outcome": str(ending.outcome) if ending else None,
        "reasons": list(ending.reasons) if ending else [],
        "removedSets": list(ending.removed) if ending else [],
    }


def _step_json(step: Step) -> JSONObject:
    wait = step.wait
    return {
        "note": step.note,
        "sets": [{"name": r.set, "before": r.before, "after": r.after} for r in step.sizes],
        "creates": [{"set": name, "machines": count} for name, count in step.creates.items()],
        "deletes": [
            {"set": d.set, "machines": list(d.names), "others": d.others} for d in step.deletes
        ],
        "updatesInPlace": list(step.selects),
        "machines": step.machines,
        "serving": step.serving,
        "wait": {
            "toServe": wait.coming,
            "toBeGone": wait.going,
            "toBeUpdated": wait.updating,
        }
        if wait
        else None,
    }
