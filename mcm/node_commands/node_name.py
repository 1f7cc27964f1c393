"""The argument that all commands for Nodes have: a Node, or the machine whose Node is meant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

import click

from mcm.api.core import NODES
from mcm.api.machine import MACHINES


@final
@dataclass(frozen=True, slots=True)
class Named:
    """``name`` is a Node's, or that of the machine which has it."""

    name: str
    of_machine: bool = False


@final
class NodeName(click.ParamType[Named]):
    """``NAME``, ``node/NAME``, or ``mc/NAME`` for the Node of a machine."""

    name = "node"
    _NODE = re.compile(rf"(?:(?:no|{NODES.plural[:-1]}s?)/)?([^/]+)")
    _MACHINE = re.compile(
        rf"(?:mc|{MACHINES.plural[:-1]}s?)(?:\.{re.escape(MACHINES.group)})?/([^/]+)"
    )

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Named:
        if isinstance(value, Named):
            return value
        if found := self._MACHINE.fullmatch(str(value)):
            return Named(found.group(1), of_machine=True)
        if found := self._NODE.fullmatch(str(value)):
            return Named(found.group(1))
        self.fail(f"{str(value)!r} is no node; say NAME, node/NAME or mc/MACHINE", param, ctx)


argument = click.argument("node", type=NodeName())
