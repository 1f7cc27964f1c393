"""``mcm preflight``: its options, and how it ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final, TextIO

import click

from mcm.client.transport import Transport
from mcm.clock import Clock, SystemClock
from mcm.cluster_commands import options as common
from mcm.cluster_commands import running
from mcm.configuration.command_line import ManagerCommand
from mcm.configuration.configuration import Configuration
from mcm.connections import connect
from mcm.options import Options
from mcm.preflight import report
from mcm.preflight.checks import CHECKS
from mcm.preflight.finding import Finding, Outcome
from mcm.preflight.go_flags import CommandLine, check_flags, command_lines
from mcm.preflight.read_only import ReadOnlyTransport
from mcm.preflight.reading import ClusterReader, look
from mcm.preflight.seen import Seen

UNCHECKED: Final = 1
PROBLEMS: Final = 3


@click.command(cls=ManagerCommand)
@click.option("--go-manager-args", type=click.File(), metavar="FILE",
              help="Also tell what becomes of the flags of the Go original: its command lines, or "
                   "the manifest of its Deployment; - for standard input.")  # fmt: skip
@common.output("text", "json")
def preflight(*, go_manager_args: TextIO | None, output: str, configuration: Configuration) -> None:
    """Check a live cluster for a manager that is to run there, without writing anything.

    Takes the flags that `mcm run` is to get, and looks as the user of its kubeconfigs. Looks at
    CRDs, roles, leases, objects, nodes, webhooks and other managers; no check stops another. The
    server is asked what the user may do, by reviews, which it does not store.

    Ends with 0 if there is no problem, with 1 if a cluster could not be reached, with 3 if there
    are problems.
    """
    lines = _command_lines(go_manager_args.read()) if go_manager_args else []
    seen = running.run(_seen(configuration.options, SystemClock()), mirror="")
    findings = [*findings_of(seen), *check_flags(lines)]
    if output == "json":
        common.print_as(output, report.as_json(findings))
    else:
        click.echo(report.as_text(findings), nl=False)
    if any(server.unreachable for server in seen.servers):
        sys.exit(UNCHECKED)
    if any(finding.outcome is Outcome.PROBLEM for finding in findings):
        sys.exit(PROBLEMS)


def findings_of(seen: Seen) -> Sequence[Finding]:
    """Return what all checks say; of a cluster that cannot be reached, only that."""
    checks = CHECKS[:1] if seen.servers and seen.servers[0].unreachable else CHECKS
    return [finding for check in checks for finding in check(seen)]


async def _seen(options: Options, clock: Clock) -> Seen:
    connections = connect(options, clock)
    try:
        return await seen_through(connections.control, connections.target, options, clock=clock)
    finally:
        await connections.aclose()


async def seen_through(
    control: Transport, target: Transport | None, options: Options, *, clock: Clock
) -> Seen:
    """Look at clusters through these transports, which get nothing but reads to carry."""
    reader = ClusterReader("control", ReadOnlyTransport(control, clock=clock), clock=clock)
    other = reader
    if target is not None and target is not control:
        other = ClusterReader("target", ReadOnlyTransport(target, clock=clock), clock=clock)
    return await look(options, reader, other if target is not None else None, clock=clock)


def _command_lines(text: str) -> list[CommandLine]:
    try:
        return command_lines(text)
    except ValueError as error:
        raise click.UsageError(f"--go-manager-args: {error}") from None
