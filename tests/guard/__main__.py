"""``python -m tests.guard``: what the guarded paths cost here, against their budgets.

``--write`` renews the budgets (``make budgets``), ``--explain PATH`` names the dearest functions of
a path, ``--json`` prints what was measured.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict

from tests.guard.cost import BUDGETS, Cost, complaint, read, renewed, this_python, written
from tests.guard.paths import PATHS, measure

_DEAREST = 25


def explained(cost: Cost) -> str:
    functions = sorted(cost.functions.items(), key=lambda item: -item[1])
    lines = [f"{amount:>9,}  {amount / cost.amount:>4.0%}  {name}" for name, amount in functions]
    return "\n".join(lines[:_DEAREST])


def table(costs: Mapping[str, Cost]) -> str:
    budgets = read().get(this_python(), {})
    width = max(map(len, costs))
    lines = []
    for path, cost in costs.items():
        held = f"{cost.amount / budgets[path].amount - 1:+.1%}" if path in budgets else "new"
        lines.append(f"{path:{width}}  {cost.amount:>9,} {cost.unit:12}  {held}")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="What the guarded paths cost.")
    parser.add_argument("--write", action="store_true", help="renew the budgets")
    parser.add_argument("--explain", metavar="PATH", choices=PATHS, help="its dearest functions")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    costs = measure([given.explain] if given.explain else ())
    if given.json:
        sys.stdout.write(json.dumps({path: asdict(cost) for path, cost in costs.items()}))
        return 0
    if given.explain:
        sys.stdout.write(f"{explained(costs[given.explain])}\n")
        return 0
    sys.stdout.write(f"{table(costs)}\n")
    if given.write:
        BUDGETS.write_bytes(written(renewed(read(), costs)))
        return 0
    budgets = read().get(this_python(), {})
    found = [complaint(path, cost, budgets.get(path)) for path, cost in costs.items()]
    sys.stdout.write("".join(f"\n{text}\n" for text in found if text))
    return 1 if any(found) else 0


if __name__ == "__main__":
    sys.exit(main())
