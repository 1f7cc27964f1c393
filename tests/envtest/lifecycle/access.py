"""Giving a user exactly the rules that the chart holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from tests.envtest.bench import Bench, Document

_RULES = Path(__file__).parents[3] / "charts" / "mcm" / "files" / "rbac"
_GROUP = "rbac.authorization.k8s.io"


def rules(name: str) -> list[Any]:
    """Return the rules of one of the chart's files, by its name without the ending."""
    found: list[Any] = yaml.safe_load((_RULES / f"{name}.yaml").read_text())
    return found


async def grant_manager(admin: Bench, user: str) -> None:
    """Bind ``user`` to what a manager needs that manages the bench's namespace, whose cluster is
    the target too; the simulated cloud runs elsewhere."""
    control = rules("control") + rules("provider-simulated")
    await _grant(admin, user, control, namespace=admin.namespace)
    await _grant(admin, user, rules("target"))
    await _grant(admin, user, rules("target-bootstrap-tokens"), namespace="kube-system")


async def grant_cloud(admin: Bench, user: str) -> None:
    """Bind ``user`` to what the simulated cloud of the bench's namespace needs."""
    await _grant(admin, user, rules("simulated-cloud-control"), namespace=admin.namespace)
    await _grant(admin, user, rules("simulated-cloud-target"))


async def _grant(admin: Bench, user: str, granted: list[Any], *, namespace: str = "") -> None:
    kind, root = "ClusterRole", f"/apis/{_GROUP}/v1"
    if namespace:
        kind, root = "Role", f"{root}/namespaces/{namespace}"
    meta = {"name": f"{admin.namespace}-{user.rpartition(':')[2]}"}
    role = {"metadata": meta, "rules": granted}
    binding: Document = {
        "metadata": meta,
        "roleRef": {"apiGroup": _GROUP, "kind": kind, "name": meta["name"]},
        "subjects": [{"apiGroup": _GROUP, "kind": "User", "name": user}],
    }
    await admin.create(f"{root}/{kind.lower()}s", role)
    await admin.create(f"{root}/{kind.lower()}bindings", binding)
