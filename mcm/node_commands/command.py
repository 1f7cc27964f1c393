"""The commands for Nodes: their options, and what they print."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import wraps
from random import SystemRandom
from typing import Any, Final, final

import click

from mcm.clock import SystemClock
from mcm.cluster_commands import options
from mcm.configuration.types import GoDuration
from mcm.node_commands import node_name
from mcm.node_commands.clusters import Clusters
from mcm.node_commands.display import displayed
from mcm.node_commands.drain import DrainByHand
from mcm.node_commands.forecast import Forecast, forecast
from mcm.node_commands.node_name import Named
from mcm.node_commands.order import Order
from mcm.node_commands.plan_text import plan_json, plan_text
from mcm.node_commands.reading import read_stores
from mcm.node_commands.session import Session, common, whoami
from mcm.node_commands.uncordon import uncordon as undo

BLOCKED: Final = 3
"""Exit code of a plan in which the Node does not get empty, or only by force."""


@click.command()
@node_name.argument
@common
def uncordon(*, session: Session, node: Named) -> None:
    """Undo what `mcm drain` did to a node: its cordon and its record, and nothing else.

    A cordon that was there before, or is somebody else's, stays, and is told of. One that the
    controller of the node's machine needs is refused. A drain that is under way ends.
    """
    click.echo(str(session.run(lambda clusters: undo(clusters, node))))


# ---- drain ---------------------------------------------------------------------------------------


def _ordered(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how to drain, as its argument ``order``."""

    @wraps(command)
    def wrapped(
        *, timeout: timedelta | None, force: bool, delete_unmanaged: bool, **values: Any
    ) -> None:
        order = Order(timeout=timeout, force=force, delete_unmanaged=delete_unmanaged)
        if timeout is not None and (timeout < timedelta(0) or not (timeout or force)):
            raise click.UsageError("--timeout must be more than 0s (with --force: not less)")
        command(order=order, **values)

    accepted: Sequence[options.Option] = [
        click.option(name, is_flag=True, hidden=True, expose_value=False)
        for name in ("--ignore-daemonsets", "--delete-emptydir-data", "--delete-local-data")
    ]
    return options.with_options(
        wrapped,
        (
            click.option("--timeout", type=GoDuration(),
                         help="How long it may take; by default what is left of an earlier run's, "
                              "else 2h."),
            click.option("--force", is_flag=True,
                         help="Delete what is left when the time is over (--timeout 0s: at once), "
                              "or if the node is dead, whatever budgets say."),
            click.option("--delete-unmanaged", is_flag=True,
                         help="Also have pods go that no controller owns, and nobody makes again."),
            *accepted,
        ),
    )  # fmt: skip


@click.command()
@node_name.argument
@_ordered
@options.output("text", "json")
@common
def plan(*, session: Session, node: Named, order: Order, output: str) -> None:
    """Print what a drain of a node would do now, and what would block it, without doing it.

    The drain engine itself is run, on a copy of what it looks at. Ends with 0 if the node would get
    empty, and with 3 if it would not, or only by force.
    """
    _print_plan(session, node, order, output)


def _print_plan(session: Session, node: Named, order: Order, output: str) -> None:
    async def work(clusters: Clusters) -> Forecast:
        return await _forecast(clusters, node, order)

    made = session.run(work)
    if output == "json":
        options.print_as(output, plan_json(made))
    else:
        click.echo(plan_text(made), nl=False)
    if made.blocked:
        sys.exit(BLOCKED)


async def _forecast(clusters: Clusters, named: Named, order: Order) -> Forecast:
    node = await clusters.node(await clusters.name_of(named))
    machine = await clusters.machine_of(node)
    stores = await read_stores(clusters.target, node)
    return await forecast(node, machine, stores, order, SystemClock().now())


@final
class _Drain(click.Command):
    """``drain NODE``, with the subcommand ``plan``; a Node of that name is ``node/plan``."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        if args[:1] == [plan.name]:
            return plan.make_context(f"{info_name} {plan.name}", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        with formatter.section("Commands"):
            formatter.write_dl([(f"{plan.name} NODE", plan.get_short_help_str(limit=90))])


@click.command(cls=_Drain)
@node_name.argument
@_ordered
@click.option("--dry-run", is_flag=True, help="As `mcm drain plan`: only tell what would be done.")
@click.option("--take-over", is_flag=True, help="Go on with the drain that somebody else runs.")
@common
def drain(*, session: Session, node: Named, order: Order, dry_run: bool, take_over: bool) -> None:
    """Cordon a node, and have its pods go as a machine's deletion would.

    Budgets are respected, pods with volumes go one after the other, and pods that nobody can evict
    in time are left, unless --force says otherwise. Ctrl-C stops; the same command goes on.
    """
    if dry_run:
        _print_plan(session, node, order, "text")
        return
    with displayed(terminal=sys.stdout.isatty()) as display:

        async def work(clusters: Clusters) -> None:
            by_hand = DrainByHand(
                clusters,
                await clusters.name_of(node),
                order,
                by=whoami(),
                take_over=take_over,
                display=display,
                clock=SystemClock(),
                random=SystemRandom(),
            )
            await by_hand.run()

        session.run(work)
