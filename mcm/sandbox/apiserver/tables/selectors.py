"""A label selector as a cell."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.tables.columns import NONE, View


def selector_text(view: View, *path: str) -> str:
    """Write the label selector at a path as ``-l`` takes it."""
    labels = view.at(*path, "matchLabels")
    parts = [f"{k}={v}" for k, v in sorted(labels.items())] if isinstance(labels, dict) else []
    parts += map(_requirement, view.objects(*path, "matchExpressions"))
    return ",".join(parts) or NONE


def _requirement(expression: JSONObject) -> str:
    key, operator = str(expression.get("key")), str(expression.get("operator"))
    values = expression.get("values")
    listed = ",".join(map(str, values)) if isinstance(values, list) else ""
    match operator:
        case "Exists":
            return key
        case "DoesNotExist":
            return f"!{key}"
        case "In":
            return f"{key} in ({listed})"
        case _:
            return f"{key} notin ({listed})"
