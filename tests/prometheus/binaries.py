"""Where Prometheus and promtool are found."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

NAMES = ("prometheus", "promtool")
HOW_TO_GET_THEM = "PROMETHEUS=$(tests/prometheus/ensure)"

_ENSURE = Path(__file__).parent / "ensure"
_LONGEST = 300.0


class BinariesMissing(Exception):
    """A binary is not there; the text says which, where, and how to get it."""


def locate(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that holds both.

    ``PROMETHEUS`` wins; without it the cache of ``ensure`` is used, which is filled first with
    ``CI=true``, then what is on the path. Raises BinariesMissing.
    """
    if named := environ.get("PROMETHEUS"):
        return _complete(Path(named), "PROMETHEUS")
    filling = environ.get("CI") == "true"
    command = [str(_ENSURE)] if filling else [str(_ENSURE), "--where"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST, check=False)
    if done.returncode != 0:
        raise BinariesMissing(f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")
    cached = Path(done.stdout.strip())
    on_path = shutil.which("promtool", path=environ.get("PATH"))
    if on_path and not cached.is_dir():
        return _complete(Path(on_path).parent, "the path")
    return _complete(cached, "the cache")


def _complete(folder: Path, origin: str) -> Path:
    missing = [name for name in NAMES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise BinariesMissing(
            f"no {', '.join(missing)} in {folder} ({origin}); get them with {HOW_TO_GET_THEM}"
        )
    return folder
