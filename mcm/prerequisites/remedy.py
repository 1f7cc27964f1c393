"""What to say of clusters that lack something: all of it, and one command that mends it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from mcm.options import IN_CLUSTER, Options
from mcm.prerequisites.served_kinds import MACHINE_KINDS, ServedKind, in_words


def complaint(options: Options, control: Sequence[ServedKind], target: Sequence[ServedKind]) -> str:
    """Return what is missing in either cluster and how to mend it; empty if nothing is."""
    parts = []
    if control:
        parts.append(
            f"the control cluster does not serve {in_words(control)}; install the definitions with "
            f"`{_command(options, control)}`"
        )
    if target:
        parts.append(
            f"the target cluster does not serve {in_words(target)}: is it a Kubernetes cluster?"
        )
    return "; ".join(parts)


def _command(options: Options, lacking: Sequence[ServedKind]) -> str:
    """The one command that installs all of it: what exists already is only applied anew."""
    crds = "mcm crds"
    if not set(lacking) <= set(MACHINE_KINDS):
        crds += f" --provider {shlex.quote(options.provider.name)}"
    path = options.clusters.control_kubeconfig or options.clusters.target_kubeconfig
    kubeconfig = f" --kubeconfig {shlex.quote(path)}" if path not in ("", IN_CLUSTER) else ""
    return f"{crds} | kubectl{kubeconfig} apply -f -"
