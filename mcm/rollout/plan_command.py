"""``mcm rollout plan``: its options, and what they make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click

from mcm.api.meta import JSONObject
from mcm.api.validation import describe, validate_machine_deployment
from mcm.clock import SystemClock
from mcm.cluster_commands.options import output as output_option
from mcm.cluster_commands.options import print_as
from mcm.cluster_commands.running import Failed
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.rollout import options
from mcm.rollout.cluster import Cluster
from mcm.rollout.forecast import Forecast
from mcm.rollout.plan_text import Plan, plan_json, plan_text
from mcm.rollout.session import EXPECTED, Session, common, fail
from mcm.rollout.supposition import (
    Namespace,
    Supposition,
    name_of,
    read_dump,
    read_manifest,
    supposed,
)

_FILE: Final = click.Path(path_type=Path, allow_dash=True)
_STEPS: Final = 30


@click.command()
@click.argument("deployment", type=options.DeploymentName(), required=False)
@click.option("-f", "--filename", "filenames", multiple=True, type=_FILE,
              help="Plan as if this manifest of the deployment were applied; - is standard "
                   "input.")  # fmt: skip
@click.option("--from", "dumps", multiple=True, type=_FILE,
              help="Ask no cluster: the objects are in this file, as written by "
                   "`kubectl get mcd,mcs,mc -o yaml`; - is standard input.")  # fmt: skip
@click.option("--replicas", type=click.IntRange(min=0), help="Suppose that many machines.")
@click.option("--set-class", "class_name", default="", help="Suppose this machine class.")
@click.option("--restart", "restarted", is_flag=True, help="Suppose `mcm rollout restart`.")
@click.option("--resume", "resumed", is_flag=True, help="Suppose `mcm rollout resume`.")
@click.option("--to-revision", "revision", type=click.IntRange(min=0),
              help="Suppose `mcm rollout undo` to this revision; 0 is the last one.")  # fmt: skip
@click.option("--new-machines-fail", is_flag=True,
              help="Suppose that no new machine comes up, and no update in place ends: how far "
                   "would it go?")  # fmt: skip
@click.option("--steps", default=_STEPS, show_default=True, type=click.IntRange(min=0),
              help="The most steps to show; 0: all.")  # fmt: skip
@output_option("text", "json")
@common
def plan(
    *,
    session: Session,
    deployment: str | None,
    filenames: Sequence[Path],
    dumps: Sequence[Path],
    new_machines_fail: bool,
    steps: int,
    output: str,
    **suppositions: Any,
) -> None:
    """Print the next steps that a deployment would take, without taking any.

    The controllers' own decisions are asked. Machines are supposed to follow: new ones come up,
    deleted ones go, what is broken stays broken. Nothing is written, and no manager needs to run.
    """
    if not (deployment or filenames or dumps):
        raise click.UsageError("say which deployment, or name a file with --filename or --from")
    now, name = SystemClock().now(), deployment or ""
    try:
        manifest = read_manifest(filenames, name) if filenames else None
        supposition = Supposition(manifest=manifest, **suppositions)
        if dumps:
            found = read_dump(dumps, name, session.namespace)
        else:
            name = name or name_of(manifest)
            found = session.run(lambda cluster: _found(cluster, name, manifest))
        seen = supposed(found, supposition, now)
        if complaints := validate_machine_deployment(seen.deployment):
            raise Failed(f"nothing would be done: {describe(complaints)}")
        warning = ""
        if missing := found.lacks_class_of(seen.deployment):
            warning = f'there is no MachineClass "{missing}": no machine of it can be made'
        failing = new_machines_fail or bool(warning)
        forecast = Forecast(seen, now, others=found.around(), new_machines_fail=failing)
        made = replace(_planned(forecast, seen, steps), warning=warning)
    except EXPECTED as error:
        fail(error)
    if output == "json":
        print_as(output, plan_json(made))
    else:
        click.echo(plan_text(made), nl=False)


async def _found(cluster: Cluster, name: str, manifest: JSONObject | None) -> Namespace:
    raw = await cluster.raw_deployment(name, required=manifest is None)
    others = [d for d in await cluster.deployments() if d.metadata.name != name]
    sets, machines = await cluster.sets(), await cluster.machines()
    return Namespace(raw, sets, machines, others, await cluster.classes())


def _planned(forecast: Forecast, seen: DeploymentSnapshot, most: int) -> Plan:
    """Take steps until the end, or until there are more than are to be shown."""
    taken = tuple(islice(forecast.steps(), most + 1 if most else None))
    if most and len(taken) > most:
        return Plan(seen, taken[:most], None, pool=forecast.pool)
    return Plan(seen, taken, forecast.ending(), pool=forecast.pool)
