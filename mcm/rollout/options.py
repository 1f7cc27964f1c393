"""The argument that all commands of ``mcm rollout`` have: which deployment is meant."""

from __future__ import annotations

import re
from typing import final

import click

from mcm.api.machine import MACHINE_DEPLOYMENTS


@final
class DeploymentName(click.ParamType[str]):
    """``NAME``, or a word for the kind and the name."""

    name = "deployment"
    _FORM = re.compile(
        rf"(?:(?:mcd|machinedeployments?)(?:\.{re.escape(MACHINE_DEPLOYMENTS.group)})?/)?([^/]+)"
    )

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        found = self._FORM.fullmatch(str(value))
        if found is None:
            self.fail(f"{str(value)!r} is no MachineDeployment; say NAME or mcd/NAME", param, ctx)
        return found.group(1)


deployment = click.argument("deployment", type=DeploymentName())
