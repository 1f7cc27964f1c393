"""A click command that takes all flags of the manager, and says of all faults at once."""

from __future__ import annotations

import os
from collections.abc import Mapping

import click

from mcm.configuration.arguments import read_arguments
from mcm.configuration.configuration import FLAGS, Misconfigured, configured
from mcm.configuration.environment import read_environment
from mcm.configuration.given import Given, Source
from mcm.configuration.help import write_groups


class ManagerCommand(click.Command):
    """Calls its function with ``configuration``, beside the values of its own click options."""

    own_defaults: Mapping[str, object] = {}
    """By the flags' names, where the command's are not those of the manager."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:
            return super().parse_args(ctx, [])
        arguments = read_arguments(args, FLAGS, self._own_options(ctx))
        try:
            super().parse_args(ctx, arguments.rest)  # ends here for --help
        except click.UsageError as error:
            arguments.source.problems.append(_in_one_line(error))
        environment = read_environment(os.environ, FLAGS.values())
        try:
            ctx.params["configuration"] = configured(
                [arguments.source, environment], [*self.below(ctx), self._defaults()]
            )
        except Misconfigured as error:
            raise click.UsageError(_listed(error.problems), ctx) from None
        return []

    def below(self, ctx: click.Context) -> list[Source]:
        """Sources that are obeyed where neither arguments, environment nor file say anything."""
        return []

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        super().format_options(ctx, formatter)
        write_groups(formatter, self.own_defaults)

    def _own_options(self, ctx: click.Context) -> dict[str, bool]:
        return {
            name: isinstance(param, click.Option) and not param.is_flag
            for param in self.get_params(ctx)
            for name in (*param.opts, *param.secondary_opts)
        }

    def _defaults(self) -> Source:
        given = {name: Given(value, "default") for name, value in self.own_defaults.items()}
        return Source(given=given)


def _in_one_line(error: click.UsageError) -> str:
    names = getattr(getattr(error, "param", None), "opts", None)
    return f"{names[0]}: {error.message}" if names else error.format_message()


def _listed(problems: tuple[str, ...]) -> str:
    if len(problems) == 1:
        return problems[0]
    return "\n  ".join([f"{len(problems)} things are wrong:", *problems])
