"""Whether the user of the kubeconfigs may do what the manager does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mcm.preflight.finding import Finding, ok, problem, warning
from mcm.preflight.seen import Denied, Seen

_CHECK: Final = "access"


def check_permissions(seen: Seen) -> Iterator[Finding]:
    for granted in seen.access:
        if granted.unanswered:
            text = f"{granted.purpose.name}: the server tells nothing of it: {granted.unanswered}"
            yield warning(_CHECK, granted.place, text, "compare the roles by hand")
        elif granted.denied:
            for denied in granted.denied:
                yield _said(denied)
        else:
            text = f"{granted.purpose.name}: all that is needed is granted"
            yield ok(_CHECK, granted.place, text)


def _said(denied: Denied) -> Finding:
    missing = "; ".join(
        f"{', '.join(verbs)} {resource}" for resource, verbs in denied.verbs.items()
    )
    remedy = f"grant the rules of charts/mcm/files/rbac/{denied.purpose.name}.yaml to this user"
    if denied.rule.without:
        text = f"may not {missing}: {denied.rule.without}"
        return warning(_CHECK, denied.place, text, remedy)
    return problem(_CHECK, denied.place, f"may not {missing}", remedy)
