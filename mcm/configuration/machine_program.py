"""A process that runs machine controllers only is told what the Go original's program for these is.

There ``--concurrent-syncs`` is the number of workers of each of them, and ``--port`` is 10259. Both
flags belong to the set controllers as long as one of these runs, too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Final

from mcm.configuration.given import Given
from mcm.controllers.selection import Group
from mcm.options import ControllerChoice

_PORT: Final = Given(10259, "--controllers")


def as_machine_program(given: Mapping[str, Given]) -> dict[str, Given]:
    """Return what is meant by what is given: the same, unless only machine controllers run."""
    result = dict(given)
    if _groups(given) == (Group.MACHINES,):
        result.setdefault("port", _PORT)
        if "concurrent-syncs" in given:
            result.setdefault("machine-concurrent-syncs", given["concurrent-syncs"])
    return result


def _groups(given: Mapping[str, Given]) -> tuple[Group, ...]:
    words = given["controllers"].value if "controllers" in given else None
    if not isinstance(words, tuple):
        return ()
    choice = dataclasses.replace(ControllerChoice(), words=words)
    return () if choice.validate() else choice.groups
