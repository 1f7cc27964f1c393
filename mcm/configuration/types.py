"""Types of click parameters for values that are written the way Go writes them."""

from __future__ import annotations

from datetime import timedelta
from typing import final

import click

from mcm.configuration.kinds import boolean, duration


@final
class GoDuration(click.ParamType[timedelta]):
    """``90s``, ``1h30m``; shown and read the way Go writes durations."""

    name = "duration"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> timedelta:
        if isinstance(value, timedelta):
            return value
        try:
            return duration(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@final
class GoBool(click.ParamType[bool]):
    """``--flag``, ``--flag=true``, ``--flag=false``, in all spellings of Go's ``ParseBool``."""

    name = "bool"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> bool:
        if isinstance(value, bool):
            return value
        try:
            return boolean(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
