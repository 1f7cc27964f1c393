"""What it costs to start: CPU time and modules, of commands and of ``mcm run``.

``python -m bench.process_start`` prints a table. CPU seconds differ between machines and with what
else they do, so each stands beside that of importing the HTTP library alone.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

IN_POD: Final[Mapping[str, str]] = {
    "KUBERNETES_SERVICE_HOST": "127.0.0.1",
    "KUBERNETES_SERVICE_PORT": "1",
}
COMMANDS: Final[Mapping[str, Sequence[str]]] = {
    "version": ("version",),
    "run --help": ("run", "--help"),
    "crds": ("crds",),
    "validate --help": ("validate", "--help"),
}
_REPEATED = 7
_TELLS_MODULES = (
    "import atexit, sys\n"
    "atexit.register(lambda: print('\\n', *sorted(sys.modules), file=sys.stderr))\n"
    "from mcm.__main__ import main\n"
    "sys.argv[0] = 'mcm'\n"
    "main()\n"
)


@dataclass(frozen=True, slots=True)
class Start:
    """CPU seconds (user and system) of one process, and the modules that it had loaded."""

    cpu_seconds: float
    modules: frozenset[str]


def command(*arguments: str) -> Start:
    """Run a command to its end. Raises CalledProcessError if it fails."""
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-c", _TELLS_MODULES, *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    after = os.times()
    spent = after.children_user + after.children_system
    spent -= before.children_user + before.children_system
    return Start(spent, frozenset(done.stderr.splitlines()[-1].split()))


def first_request(folder: Path) -> Start:
    """Run ``mcm run`` in a pod until its first request; ``folder`` becomes the service account's.

    Raises CalledProcessError if it does not come to that.
    """
    for name in ("token", "namespace", "ca.crt"):
        (folder / name).write_text("made-up")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "bench.first_request", str(folder)),
            *("run", "--target-kubeconfig=inClusterConfig", "--namespace=made-up"),
            *("--address=127.0.0.1", f"--port={_free_port()}"),
        ],
        env={**os.environ, **IN_POD},
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, *modules = done.stdout.split()
    return Start(float(seconds), frozenset(modules))


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _cheapest(starts: Sequence[Start]) -> Start:
    return min(starts, key=lambda start: start.cpu_seconds)


def _reference() -> float:
    def once() -> float:
        before = os.times()
        subprocess.run([sys.executable, "-c", "import aiohttp"], check=True)
        after = os.times()
        return sum(after[2:4]) - sum(before[2:4])

    return min(once() for _ in range(_REPEATED))


def main() -> None:
    reference = _reference()
    print(f"{'':32} CPU s   of importing aiohttp   modules")
    print(f"{'python -c import aiohttp':32} {reference:5.2f}")
    with tempfile.TemporaryDirectory() as folder:
        rows = {
            f"mcm {name}": _cheapest([command(*arguments) for _ in range(_REPEATED)])
            for name, arguments in COMMANDS.items()
        }
        starts = [first_request(Path(folder)) for _ in range(_REPEATED)]
        rows["mcm run, to the first request"] = _cheapest(starts)
    for name, start in rows.items():
        ratio = start.cpu_seconds / reference
        print(f"{name:32} {start.cpu_seconds:5.2f} {ratio:22.2f}   {len(start.modules):7}")


if __name__ == "__main__":
    main()
