"""Options and arguments that several commands of ``mcm rollout`` have."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, final

import click
import orjson
import yaml

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


def output(*forms: str) -> Callable[[Any], Any]:
    """Return the option for the form of the output; the first one is the default."""
    return click.option("-o", "--output", default=forms[0], show_default=True,
                        type=click.Choice(forms), help="Form of the output.")  # fmt: skip


def print_as(form: str, content: object) -> None:
    """Print ``content`` as JSON or YAML."""
    if form == "json":
        click.echo(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    else:
        click.echo(yaml.safe_dump(content, sort_keys=False), nl=False)
