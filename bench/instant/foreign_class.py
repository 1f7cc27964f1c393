"""What the fleet's classes must say for a manager whose driver is not the bench's."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import yaml

from mcm.api.meta import JSONObject

_TAKEN: Final = ("provider", "providerSpec", "nodeTemplate")


class BadClass(Exception):
    """A ``--machine-class`` that cannot be used; the text names the file and what is wrong."""


def read_class(file: str) -> JSONObject:
    """Return what the class in ``file`` has of provider, providerSpec and nodeTemplate.

    Raises :class:`BadClass`.
    """
    try:
        document = yaml.safe_load(Path(file).read_text())
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadClass(f"--machine-class {file}: cannot be read: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != "MachineClass":
        raise BadClass(f"--machine-class {file}: has no MachineClass as its only document")
    taken = {name: document[name] for name in _TAKEN if name in document}
    wrong = [name for name, value in taken.items() if isinstance(value, str) != (name == _TAKEN[0])]
    if wrong:
        raise BadClass(f"--machine-class {file}: {wrong[0]} has not the form that it must have")
    return taken
