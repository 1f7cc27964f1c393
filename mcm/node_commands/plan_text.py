"""A forecast of a drain as people read it, and as programs do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from mcm.api.durations import format_duration
from mcm.api.meta import JSONObject
from mcm.api.timestamps import rfc3339
from mcm.cluster_commands.tables import table
from mcm.drain.execution import Verb
from mcm.drain.mode import Force
from mcm.drain.result import Cause, PodStanding
from mcm.drain.volumes import Holding
from mcm.node_commands.forecast import Fate, Forecast

_NEVER: Final = "never"
_NOW: Final = "now"

REMEDIES: Final = {
    Cause.HELD_BY_BUDGET: "other pods of the budget have to become healthy",
    Cause.REFUSED: "the server has to allow it",
    Cause.AWAITING_COMPLETION: "it has to complete, or its label for drains to be taken off",
    Cause.OVERDUE: "its node's kubelet has to end it, or its finalizers to be taken off",
    Cause.AWAITING_WAVE: "pods of an earlier wave have to go first",
    Cause.AWAITING_LANE: "the volumes of another pod have to move first",
}
"""What would mend it, where the detail of the standing does not say so."""


def plan_text(forecast: Forecast) -> str:
    blocks = [
        [_heading(forecast)],
        [*_pods(forecast)],
        [*_blockers(forecast)],
        [*_left(forecast)],
        [*_notes(forecast)],
        [*_end(forecast)],
    ]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines) + "\n"


def _heading(forecast: Forecast) -> str:
    node, machine = forecast.node, forecast.machine
    of = f" of machine {machine.metadata.key}" if machine is not None else ""
    cordoned = ", cordoned" if node.spec.unschedulable else ""
    going, staying = len(forecast.fates), len(forecast.left)
    return f"node {node.metadata.name}{of}{cordoned}: {_count(going)} to go, {staying} to stay"


def _pods(forecast: Forecast) -> Iterator[str]:
    if not forecast.fates:
        return
    rows = [
        (
            fate.pod.metadata.key,
            str(fate.wave) if fate.wave is not None else "-",
            _when(forecast.at, _asked_at(fate)),
            _when(forecast.at, fate.gone),
            _what(fate),
        )
        for fate in forecast.fates
    ]
    yield from table(("POD", "WAVE", "ASKED", "GONE", "WHAT"), rows)


def _asked_at(fate: Fate) -> datetime | None:
    return fate.asked.at if fate.asked is not None else None


def _when(at: datetime, moment: datetime | None) -> str:
    if moment is None:
        return _NEVER
    after = timedelta(seconds=round((moment - at).total_seconds()))
    return f"+{format_duration(after)}" if after else _NOW


def _what(fate: Fate) -> str:
    parts = [_deed(fate)]
    if fate.volumes:
        parts.append(_volumes(fate.volumes))
    standing = fate.now
    if standing is not None and standing.cause is not Cause.LEAVING:
        parts.append(standing.cause.value)
    return "; ".join(filter(None, parts))


def _deed(fate: Fate) -> str:
    if fate.by_force is not None and (fate.asked is None or fate.asked.at >= fate.by_force):
        return "deleted by force"
    if fate.asked is None:
        return "ends already" if fate.pod.metadata.deletion_timestamp is not None else ""
    return "evicted" if fate.asked.verb is Verb.EVICT else "deleted"


def _volumes(holdings: Sequence[Holding]) -> str:
    names = ", ".join(holding.volume for holding in holdings)
    attachers = ", ".join(sorted({holding.attacher for holding in holdings}))
    return f"{'volumes' if len(holdings) > 1 else 'volume'} {names} ({attachers})"


def _blockers(forecast: Forecast) -> Iterator[str]:
    blockers = forecast.blockers
    if not blockers:
        return
    yield "What keeps the node from being empty:"
    for fate in blockers:
        yield f"  {fate.pod.metadata.key}: {why(fate)}"


def why(fate: Fate) -> str:
    """Say what holds a pod that is blocked, and what would mend it."""
    standing = fate.end or fate.now
    if standing is None:
        return "only force takes it away"
    return explained(standing)


def explained(standing: PodStanding) -> str:
    """Say in one line where a pod stands, and what would mend it."""
    remedy = REMEDIES.get(standing.cause, "")
    return f"{described(standing)}; {remedy}" if remedy else described(standing)


def described(standing: PodStanding) -> str:
    """Say in one line where a pod stands."""
    detail = standing.detail
    if not detail or detail == standing.cause.value:
        return standing.cause.value
    if standing.cause is Cause.HELD_BY_BUDGET:
        return detail  # says all of it
    return f"{standing.cause.value}: {detail}"


def _left(forecast: Forecast) -> Iterator[str]:
    if forecast.left:
        yield "Left on the node:"
    for left in forecast.left:
        yield f"  {left.pod.metadata.key} {left.why.value}"


def _notes(forecast: Forecast) -> Iterator[str]:
    for remark in forecast.remarks:
        yield f"Note: {remark}"


def _end(forecast: Forecast) -> Iterator[str]:
    if not forecast.fates:
        yield "Nothing is to be done: no pod has to go."
        return
    blocked = forecast.blockers
    if forecast.refusal:
        yield f"`mcm drain` would not begin: {forecast.refusal}."
    if blocked:
        yield f"It is blocked by {_count(len(blocked))}."
    elif forecast.over is not None:
        yield f"The node is empty after {_duration(forecast.over - forecast.at)} at most."
    yield from _force(forecast)


def _force(forecast: Forecast) -> Iterator[str]:
    deadline = forecast.request.deadline
    if forecast.force not in (Force.NONE, Force.TIMEOUT, Force.LABEL):
        if forecast.request.may_force:
            yield f"Pods are deleted by force at once: {forecast.force.value}."
        else:
            yield (
                f"Without --force nothing is done ({forecast.force.value}): "
                "nobody on the node would end the pods."
            )
    elif forecast.forced_at is not None:
        left = _duration(max(timedelta(0), forecast.forced_at - forecast.at))
        yield f"What is left at {rfc3339(forecast.forced_at)} (in {left}) is deleted by force."
    else:
        yield (
            f"Nothing is deleted by force; the command ends at {rfc3339(deadline)} (in "
            f"{_duration(max(timedelta(0), deadline - forecast.at))}) whatever is left."
        )
        if forecast.over is not None and forecast.over > deadline:
            yield "That may be too early."


def _duration(span: timedelta) -> str:
    return format_duration(timedelta(seconds=round(span.total_seconds())))


def _count(pods: int) -> str:
    return f"{pods} pod{'s' if pods != 1 else ''}"


# ---- JSON ----------------------------------------------------------------------------------------


def plan_json(forecast: Forecast) -> JSONObject:
    """Return the forecast for programs; its fields are described in docs/drain-commands.md."""
    machine, over = forecast.machine, forecast.over
    return {
        "node": forecast.node.metadata.name,
        "machine": machine.metadata.key if machine is not None else None,
        "cordoned": forecast.node.spec.unschedulable,
        "time": rfc3339(forecast.at),
        "blocked": forecast.blocked,
        "refused": forecast.refusal or None,
        "emptyAfterSeconds": (over - forecast.at).total_seconds() if over is not None else None,
        "deadline": rfc3339(forecast.request.deadline),
        "forcedAt": _stamp(forecast.forced_at),
        "force": forecast.force.value if forecast.force is not Force.NONE else None,
        "pods": [_pod_json(fate) for fate in forecast.fates],
        "left": [
            {"pod": left.pod.metadata.key, "uid": left.pod.metadata.uid, "why": left.why.value}
            for left in forecast.left
        ],
        "notes": [
            {"pod": remark.pod.metadata.key, "note": remark.text} for remark in forecast.remarks
        ],
    }


def _pod_json(fate: Fate) -> JSONObject:
    return {
        "pod": fate.pod.metadata.key,
        "uid": fate.pod.metadata.uid,
        "wave": fate.wave,
        "blocked": fate.blocked,
        "action": _deed(fate) or None,
        "askedAt": _stamp(_asked_at(fate)),
        "goneAt": _stamp(fate.gone),
        "forcedAt": _stamp(fate.by_force),
        "standing": _standing_json(fate.now),
        "standingAtTheEnd": _standing_json(fate.end) if fate.blocked else None,
        "volumes": [
            {"volume": h.volume, "claim": h.claim, "attacher": h.attacher} for h in fate.volumes
        ],
    }


def _standing_json(standing: PodStanding | None) -> JSONObject | None:
    if standing is None:
        return None
    return {
        "cause": standing.cause.value,
        "detail": standing.detail,
        "since": _stamp(standing.since),
        "until": _stamp(standing.until),
        "lasting": standing.lasting,
        "remedy": REMEDIES.get(standing.cause),
    }


def _stamp(moment: datetime | None) -> str | None:
    return rfc3339(moment) if moment is not None else None
