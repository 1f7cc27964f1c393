"""What a path costs, what it may cost, and what is said when the two part."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import msgspec

INSTRUCTIONS: Final = "instructions"
BYTES: Final = "bytes"
BUDGETS: Final = Path(__file__).parent / "budgets.json"
RENEW: Final = "make budgets"

DEARER: Final = 1.10
CHEAPER: Final = 0.92
"""How far a cost may be from its budget. Whatever is within these, and becomes a fifth dearer, is
not within them any more: that is why one that became cheaper has to have its budget renewed."""


@dataclass(frozen=True, slots=True)
class Cost:
    """``codec_calls`` is how often something is decoded or encoded. ``functions`` are for who asks
    what is dear; no budget holds them."""

    unit: str
    amount: int
    codec_calls: float = 0.0
    rooms: Mapping[str, int] = field(default_factory=dict)
    functions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Budget:
    """``guessed``: from what became of the path on another Python, and not measured on this one."""

    unit: str
    amount: int
    codec_calls: float = 0.0
    rooms: Mapping[str, int] = field(default_factory=dict)
    guessed: bool = False


Budgets = dict[str, dict[str, Budget]]
"""By version of Python, whose compilers make different instructions, and path."""


def this_python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def read(path: Path = BUDGETS) -> Budgets:
    return msgspec.json.decode(path.read_bytes(), type=Budgets) if path.is_file() else {}


def written(budgets: Budgets) -> bytes:
    return msgspec.json.format(msgspec.json.encode(budgets, order="sorted"), indent=1) + b"\n"


def complaint(path: str, cost: Cost, budget: Budget | None) -> str:
    """Return what is wrong with a cost, and what to do; empty if nothing is."""
    if budget is None:
        return f"{path}: has no budget for Python {this_python()}; give it one with `{RENEW}`"
    found = [
        _changed(path, cost.unit, cost.amount, budget.amount, _where(cost, budget)),
        _changed(path, "calls of codecs", cost.codec_calls, budget.codec_calls),
    ]
    return "\n".join(filter(None, found))


def _changed(path: str, unit: str, now: float, held: float, where: str = "") -> str:
    if now == held or (held and CHEAPER <= now / held <= DEARER):
        return ""
    numbers = f"{now:,} {unit} instead of {held:,}"
    if now < held:
        return (
            f"{path}: cheaper by {1 - now / held:.0%} ({numbers}). Well done: have it held from "
            f"now on, with `{RENEW}`"
        )
    by = f" by {now / held - 1:.0%}" if held else ""
    return (
        f"{path}: dearer{by} ({numbers}){where}\n"
        f"  `python -m tests.guard --explain '{path}'` names the dearest functions. If it is worth "
        f"its price, say so in the commit, and renew the budget with `{RENEW}`."
    )


def _where(cost: Cost, budget: Budget) -> str:
    """Say in which rooms it became dearer, the worst first."""
    growth = {room: n - budget.rooms.get(room, 0) for room, n in cost.rooms.items()}
    worst = sorted((room for room, n in growth.items() if n > 0), key=growth.__getitem__)[::-1]
    lines = [
        f"\n  {room}: {cost.rooms[room]:,} instead of {budget.rooms.get(room, 0):,}"
        for room in worst[:4]
    ]
    return "".join(lines)


def renewed(budgets: Budgets, costs: Mapping[str, Cost]) -> Budgets:
    """Return budgets that are what was measured here. Those of other Pythons become dearer and
    cheaper with them: what was measured there is known here only as a ratio. Where a guess of that
    kind stood here before, the others have had their share already."""
    here = this_python()
    old = budgets.get(here, {})
    found: Budgets = {here: {path: _exact(cost) for path, cost in costs.items()}}
    for python, others in budgets.items():
        if python == here:
            continue
        found[python] = {
            path: _scaled(found[here][path], before=old.get(path), there=others.get(path))
            for path in costs
        }
    return found


def _exact(cost: Cost) -> Budget:
    return Budget(cost.unit, cost.amount, cost.codec_calls, dict(cost.rooms))


def _scaled(now: Budget, *, before: Budget | None, there: Budget | None) -> Budget:
    if there is None:
        return replace(now, guessed=True)
    if before is None or before.guessed or before == now:
        return there
    factor = there.amount / before.amount
    rooms = {room: round(n * factor) for room, n in now.rooms.items()}
    return Budget(now.unit, round(now.amount * factor), now.codec_calls, rooms, guessed=True)
