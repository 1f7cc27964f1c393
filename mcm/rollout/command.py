"""The commands of ``mcm rollout``: their options, and what they print."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from datetime import timedelta

import click

from mcm.api.machine import MACHINE_DEPLOYMENTS, MachineDeployment
from mcm.api.meta import JSONObject
from mcm.clock import SystemClock
from mcm.cluster_commands.options import output as output_option
from mcm.cluster_commands.options import print_as
from mcm.cluster_commands.running import Failed
from mcm.cluster_commands.tables import table
from mcm.cluster_commands.writing import tried_anew
from mcm.configuration.types import GoBool, GoDuration
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.preconditions import for_this_version
from mcm.rollout import changes, history, options
from mcm.rollout.changes import Undo
from mcm.rollout.cluster import Cluster
from mcm.rollout.display import displayed
from mcm.rollout.observation import observed
from mcm.rollout.plan_command import plan
from mcm.rollout.progress import Progress
from mcm.rollout.session import Session, common
from mcm.rollout.watching import Watching


@click.group("rollout")
def rollout() -> None:
    """Hold the commands; `mcm.cli` shows them."""


rollout.add_command(plan)


async def _observed(cluster: Cluster, name: str) -> DeploymentSnapshot:
    deployment = await cluster.deployment(name)
    return observed(deployment, await cluster.sets(), await cluster.machines())


# ---- status --------------------------------------------------------------------------------------


@rollout.command()
@options.deployment
@click.option("-w", "--watch", is_flag=False, flag_value=True, default="true", type=GoBool(),
              show_default=True, help="Watch until the rollout is over.")  # fmt: skip
@click.option("--timeout", default="0s", type=GoDuration(), show_default=True,
              help="How long to watch; 0s: as long as it takes.")  # fmt: skip
@click.option("--revision", default=0, type=click.IntRange(min=0),
              help="End with 1 if it is another revision's turn.")  # fmt: skip
@common
def status(
    *, session: Session, deployment: str, watch: bool, timeout: timedelta, revision: int
) -> None:
    """Show how far a rollout is, until it is over.

    Ends with 0 when all machines are of the present template and serve, and with 1 when the
    deployment says that it does not get on (its deadline is exceeded, it is refused, frozen, …), or
    the time is up. A paused one is waited for. With --watch=false it looks once.
    """

    async def work(cluster: Cluster) -> Progress:
        watching = Watching(cluster, deployment, clock=SystemClock(), revision=revision)
        if not watch:
            return await watching.look()
        with displayed(terminal=sys.stdout.isatty()) as display:
            try:
                async with asyncio.timeout(timeout.total_seconds() or None):
                    return await watching.follow(display.show)
            except TimeoutError:
                raise Failed("timed out waiting for the rollout to finish") from None

    progress = session.run(work)
    if progress.failure:
        for machine, trouble in progress.troubles:
            click.echo(f"  {machine}: {trouble}", err=True)
        click.echo(f"mcm: {progress.failure}", err=True)
        sys.exit(1)
    click.echo(progress.message)
    if not watch:
        for machine, trouble in progress.troubles:
            click.echo(f"  {machine}: {trouble}")


# ---- history -------------------------------------------------------------------------------------


@rollout.command("history")
@options.deployment
@click.option("--revision", default=0, type=click.IntRange(min=0),
              help="Show this revision's template, and what differs from the present.")  # fmt: skip
@output_option("text", "json", "yaml")
@common
def history_(*, session: Session, deployment: str, revision: int, output: str) -> None:
    """Show the revisions of a deployment: a set, its machines, and why it was made."""
    snapshot = session.run(lambda cluster: _observed(cluster, deployment))
    found = history.revisions(snapshot, SystemClock().now())
    if revision:
        chosen = [r for r in found if r.number == revision]
        if not chosen:
            known = ", ".join(str(r.number) for r in found) or "none"
            click.echo(f"mcm: there is no revision {revision} (there are: {known})", err=True)
            sys.exit(1)
        found = chosen[:1]
    if output != "text":
        print_as(output, [history.as_json(r, template=bool(revision)) for r in found])
    elif revision:
        _print_revision(found[0], snapshot)
    else:
        _print_history(found, snapshot)


def _print_history(found: Sequence[history.Revision], snapshot: DeploymentSnapshot) -> None:
    click.echo(_called(snapshot.deployment))
    if not found:
        click.echo("No revision yet.")
        return
    titles = ("REVISION", "SET", "MACHINES", "AGE", "CHANGE-CAUSE")
    rows = [
        (
            f"{r.number}{'*' if r.present else ''}",
            r.set.metadata.name,
            str(r.machines),
            history.human_age(r.age),
            r.cause or "<none>",
        )
        for r in found
    ]
    for line in table(titles, rows):
        click.echo(line)
    for r in found:
        if r.earlier:
            click.echo(f"Revision {r.number} was {', '.join(r.earlier)} before.")


def _print_revision(revision: history.Revision, snapshot: DeploymentSnapshot) -> None:
    name = revision.set.metadata.name
    click.echo(f"{_called(snapshot.deployment)} with revision #{revision.number} (set {name})")
    if revision.cause:
        click.echo(f"Change cause: {revision.cause}")
    click.echo("Template:")
    for line in history.template_text(revision.set.spec.template).splitlines():
        click.echo(f"  {line}")
    if revision.present:
        click.echo("This is the present template.")
        return
    click.echo("Going back to it would change:")
    for line in _difference_to(snapshot.deployment, revision):
        click.echo(f"  {line}")


def _difference_to(deployment: MachineDeployment, revision: history.Revision) -> Sequence[str]:
    names = ("present", f"revision {revision.number}")
    return history.difference(
        deployment.spec.template, revision.set.spec.template, names=names
    ) or ["nothing that counts"]


def _called(deployment: MachineDeployment) -> str:
    kind = f"{MACHINE_DEPLOYMENTS.kind.lower()}.{MACHINE_DEPLOYMENTS.group}"
    return f"{kind}/{deployment.metadata.name}"


# ---- changes -------------------------------------------------------------------------------------


async def _change(
    cluster: Cluster, name: str, change: Callable[[MachineDeployment], JSONObject]
) -> MachineDeployment:
    """Read, compute the change, write it."""

    async def attempt() -> MachineDeployment:
        deployment = await cluster.deployment(name)
        return await _write(cluster, deployment, change(deployment))

    return await tried_anew(attempt)


async def _write(
    cluster: Cluster, deployment: MachineDeployment, change: JSONObject
) -> MachineDeployment:
    meta = deployment.metadata
    bound = for_this_version(meta, change)
    return await cluster.client.patch(
        MACHINE_DEPLOYMENTS, meta.name, bound, namespace=meta.namespace
    )


@rollout.command()
@options.deployment
@common
def pause(*, session: Session, deployment: str) -> None:
    """Stop a rollout where it is; size and failed machines are taken care of all the same."""
    changed = session.run(lambda cluster: _change(cluster, deployment, changes.pause))
    click.echo(f"{_called(changed)} paused")


@rollout.command()
@options.deployment
@common
def resume(*, session: Session, deployment: str) -> None:
    """Let a paused rollout go on."""
    changed = session.run(lambda cluster: _change(cluster, deployment, changes.resume))
    click.echo(f"{_called(changed)} resumed")


@rollout.command()
@options.deployment
@common
def restart(*, session: Session, deployment: str) -> None:
    """Replace all machines by new ones of the same class, as a rollout does.

    The template gets an annotation with the time, which makes it another one: the deployment's
    strategy and its limits hold.
    """
    now = SystemClock().now
    changed = session.run(
        lambda cluster: _change(cluster, deployment, lambda d: changes.restart(d, now()))
    )
    click.echo(f"{_called(changed)} restarted")


@rollout.command()
@options.deployment
@click.option("--to-revision", default=0, type=click.IntRange(min=0), show_default=True,
              help="The revision to go back to; 0 is the last one before the present.")  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@common
def undo(*, session: Session, deployment: str, to_revision: int, dry_run: bool) -> None:
    """Go back to the template of an earlier revision, and roll the machines back to it."""

    async def attempt(cluster: Cluster) -> tuple[MachineDeployment, Undo]:
        snapshot = await _observed(cluster, deployment)
        undone = changes.undo(snapshot, to_revision)
        if undone.change is not None and not dry_run:
            await _write(cluster, snapshot.deployment, undone.change)
        return snapshot.deployment, undone

    async def work(cluster: Cluster) -> tuple[MachineDeployment, Undo]:
        return await tried_anew(lambda: attempt(cluster))

    before, undone = session.run(work)
    if undone.change is None:
        click.echo(
            f"{_called(before)} skipped rollback "
            f"(current template already matches revision {undone.revision})"
        )
        return
    suffix = " (dry run)" if dry_run else ""
    click.echo(f"{_called(before)} rolled back to revision {undone.revision}{suffix}")
    if dry_run:
        print_as("yaml", undone.change)
