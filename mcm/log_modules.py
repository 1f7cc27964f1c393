"""``--vmodule``: modules that log more than all others do, as klog has it.

``PATTERN=N`` for each: from verbosity 4 on, the modules that match log what is for debugging. A
pattern matches a module's name without ``mcm.``, the last part of it, or the name of a package.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, final

_PACKAGE: Final = "mcm."
_DEBUG_FROM: Final = 4
_RULE: Final = re.compile(r"(?P<pattern>[^=,\s]+)=(?P<number>[0-9]{1,3})", re.ASCII)


class Rule(NamedTuple):
    """Modules whose name matches ``pattern`` log as with ``--v=number``, if that is more."""

    pattern: str
    number: int


def rules_of(text: str) -> tuple[Rule, ...]:
    """Read what commas separate. Raises ValueError, naming what is no rule."""
    return tuple(_rule(part.strip()) for part in text.split(",") if part.strip())


def is_for_debugging(rules: tuple[Rule, ...], logger: str) -> bool:
    """Whether the logger logs for debugging, whatever --v is: the first rule that matches says."""
    name = logger.removeprefix(_PACKAGE)
    for rule in rules:
        if any(fnmatchcase(each, rule.pattern) for each in _names(name)):
            return rule.number >= _DEBUG_FROM
    return False


def log_more(rules: tuple[Rule, ...]) -> None:
    """Set the levels of all loggers, those that modules make later included."""

    @final
    class OfModule(logging.Logger):
        def __init__(self, name: str, level: int = logging.NOTSET) -> None:
            super().__init__(name, logging.DEBUG if is_for_debugging(rules, name) else level)

    logging.setLoggerClass(OfModule if rules else logging.Logger)
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(_PACKAGE):
            wanted = logging.DEBUG if is_for_debugging(rules, name) else logging.NOTSET
            logging.getLogger(name).setLevel(wanted)


def _rule(text: str) -> Rule:
    if (found := _RULE.fullmatch(text)) is None:
        raise ValueError(f"{text!r} is no PATTERN=NUMBER")
    return Rule(found["pattern"], int(found["number"]))


def _names(name: str) -> Iterator[str]:
    """The module, the last part of its name, and the packages that it is in."""
    yield name.rpartition(".")[2]
    while name:
        yield name
        name = name.rpartition(".")[0]
