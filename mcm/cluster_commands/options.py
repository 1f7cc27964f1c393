"""Options that commands have in common, and the forms of output that programs read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import click
import orjson
import yaml

Option: TypeAlias = Callable[[Any], Any]


def kubeconfig(*names: str, help: str) -> Option:  # noqa: A002 -- click's word
    """Return an option for a kubeconfig file; the last of ``names`` is the parameter's."""
    return click.option(*names, type=click.Path(dir_okay=False, path_type=Path), help=help)


def context() -> Option:
    return click.option("--context", default="", help="Context of the kubeconfig.")


def output(*forms: str) -> Option:
    """Return the option for the form of the output; the first one is the default."""
    return click.option("-o", "--output", default=forms[0], show_default=True,
                        type=click.Choice(forms), help="Form of the output.")  # fmt: skip


def with_options(command: Callable[..., None], options: Sequence[Option]) -> Callable[..., None]:
    """Give ``command`` the options, shown in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def print_as(form: str, content: object) -> None:
    """Print ``content`` as JSON or YAML."""
    if form == "json":
        click.echo(orjson.dumps(content, option=orjson.OPT_INDENT_2))
    else:
        click.echo(yaml.safe_dump(content, sort_keys=False), nl=False)
