"""Which cluster holds the machine objects, and which one the machines join."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, final

NO_TARGET: Final = "none"
"""``--target-kubeconfig`` value: run without a target cluster; machines have no Nodes then."""

IN_CLUSTER: Final = "inClusterConfig"
"""``--control-kubeconfig`` value: use the service account of the pod."""

_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)


@final
@dataclass(frozen=True, slots=True)
class Clusters:
    """Kubeconfigs, and the namespace of the machine objects and of the leases."""

    control_kubeconfig: str = ""
    target_kubeconfig: str = ""
    namespace: str = "default"

    @property
    def has_target(self) -> bool:
        return self.target_kubeconfig != NO_TARGET

    @property
    def are_one(self) -> bool:
        """Control and target are one cluster: then one connection serves both."""
        control, target = self.control_kubeconfig, self.target_kubeconfig
        return self.has_target and (not control or control == target)

    def validate(self) -> list[str]:
        problems = []
        if not self.namespace:
            problems.append("--namespace: must not be empty")
        elif not _NAMESPACE.fullmatch(self.namespace):
            problems.append(
                f"--namespace: {self.namespace!r} can be no namespace (at most 63 lower case "
                "letters, digits and hyphens)"
            )
        if not self.has_target and not self.control_kubeconfig:
            problems.append(
                f"--control-kubeconfig: required with --target-kubeconfig={NO_TARGET} "
                f"(a file, or {IN_CLUSTER})"
            )
        return problems
