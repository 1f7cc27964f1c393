"""The commands for Nodes: their options, and what they print."""

from __future__ import annotations

import click

from mcm.node_commands import node_name
from mcm.node_commands.node_name import Named
from mcm.node_commands.session import Session, common
from mcm.node_commands.uncordon import uncordon as undo


@click.command()
@node_name.argument
@common
def uncordon(*, session: Session, node: Named) -> None:
    """Undo what `mcm drain` did to a node: its cordon and its record, and nothing else.

    A cordon that was there before, or is somebody else's, stays, and is told of. One that the
    controller of the node's machine needs is refused. A drain that is under way ends.
    """
    click.echo(str(session.run(lambda clusters: undo(clusters, node))))
