"""How a manager is started: mcm as a user would, or another by the command line it was given by."""

from __future__ import annotations

import string
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.instant.plug_in import NAME as INSTANT

OURS: Final = "mcm"
PLACEHOLDERS: Final = ("kubeconfig", "namespace", "port")
_WORKERS: Final = 50


class BadCommand(Exception):
    """A ``--manager`` that cannot be started; the text names what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Command:
    """``line`` is for a shell if it is a text, else the arguments themselves; both may have
    :data:`PLACEHOLDERS` in braces."""

    name: str
    line: str | Sequence[str]

    def arguments(self, kubeconfig: Path, namespace: str, port: int) -> Sequence[str]:
        values = {"kubeconfig": str(kubeconfig), "namespace": namespace, "port": str(port)}
        if isinstance(self.line, str):
            return ["/bin/sh", "-c", _filled(self.line, values)]
        return [_filled(each, values) for each in self.line]


def ours(extra: Sequence[str] = ()) -> Command:
    """``mcm run`` with 50 workers for each controller and no limit of its own on requests a second.

    Of a deployment any number of machines may be replaced for bad health at once, and no share of
    unhealthy ones stops that: what is measured is how fast it goes, not how careful it is.
    """
    flags = {
        "control-kubeconfig": "{kubeconfig}",
        "target-kubeconfig": "{kubeconfig}",
        "namespace": "{namespace}",
        "provider": INSTANT,
        "concurrent-syncs": str(_WORKERS),
        "machine-concurrent-syncs": str(_WORKERS),
        "machine-max-concurrent-replacements": "100000",
        "kube-api-qps": "0",
        "address": "127.0.0.1",
        "port": "{port}",
    }
    line = [sys.executable, "-m", "mcm", "run", *(f"--{k}={v}" for k, v in flags.items()), *extra]
    return Command(OURS, line)


def parsed(text: str) -> Command:
    """Read a ``--manager``: ``mcm``, ``mcm FLAGS…`` or ``NAME=COMMAND LINE``.

    Raises :class:`BadCommand`.
    """
    first, *flags = text.split() or [""]
    if first == OURS and all(flag.startswith("--") for flag in flags):
        return ours(flags)
    name, equals, line = text.partition("=")
    if not equals or not name.replace("-", "").isalnum() or not line.strip():
        raise BadCommand(
            f"--manager {text!r}: give NAME=COMMAND, for example "
            "'go=./manager --kubeconfig={kubeconfig} --namespace={namespace}', or mcm"
        )
    try:
        fields = {field for _, field, _, _ in string.Formatter().parse(line) if field is not None}
    except ValueError as error:
        raise BadCommand(f"--manager {name}: {error}; a brace is written twice") from error
    unknown = sorted(fields - set(PLACEHOLDERS))
    if unknown:
        raise BadCommand(
            f"--manager {name}: there is no placeholder {{{unknown[0]}}}; "
            f"there are {', '.join('{' + each + '}' for each in PLACEHOLDERS)}"
        )
    if "kubeconfig" not in fields:
        raise BadCommand(f"--manager {name}: says nowhere where {{kubeconfig}} goes")
    return Command(name, line.strip())


def _filled(text: str, values: Mapping[str, str]) -> str:
    return text.format(**values)
