"""Flags that environment variables set: ``MCM_`` and the flag's name, as ``MCM_LEADER_ELECT``.

The specification keeps the prefix ``MC_`` for variables that it defines, and defines none.
Kubernetes gives pods variables that name the Services of their namespace: one of the name ``mcm``
makes ``MCM_PORT=tcp://10.0.0.1:80``, which is no port. Such are known by their shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from mcm.configuration.flag import Flag
from mcm.configuration.given import Source, suggestion

PREFIX: Final = "MCM_"
RESERVED: Final = "MC_"

_OF_A_SERVICE: Final = re.compile(
    r".*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)",
    re.ASCII,
)
_ADDRESS_OF_A_SERVICE: Final = re.compile(r"(tcp|udp|sctp)://\S+:[0-9]+", re.ASCII)


def variable_of(flag: str) -> str:
    """Return the name of the variable that sets the flag of this name."""
    return PREFIX + flag.replace("-", "_").upper()


def read_environment(environ: Mapping[str, str], flags: Iterable[Flag]) -> Source:
    """Read the variables that set flags. An empty one is as good as none."""
    source = Source()
    known = {variable_of(flag.name): flag for flag in flags}
    taken_for_links = []
    for name in sorted(environ):
        value = environ[name]
        if not name.startswith((PREFIX, RESERVED)) or _OF_A_SERVICE.fullmatch(name):
            continue
        if name.endswith("_PORT") and _ADDRESS_OF_A_SERVICE.fullmatch(value):
            if name in known:
                taken_for_links.append(name)
        elif (flag := known.get(name)) is None:
            source.remarks.append(f"{name}: {_why_ignored(name)}{suggestion(name, known)}")
        elif value:
            source.take_text(flag, value, name)
    if taken_for_links:
        source.remarks.append(
            f"{', '.join(taken_for_links)}: the address of a Service, not the value of a flag; "
            "ignored (enableServiceLinks: false on the pod keeps such variables away)"
        )
    return source


def _why_ignored(name: str) -> str:
    if name.startswith(PREFIX):
        return "this variable is ignored, as it names no flag"
    return f"this variable is ignored, as the specification defines none with {RESERVED}"
