"""The instant provider as an installed package, without installing anything.

A folder on ``PYTHONPATH`` that holds a package's metadata is an installed package for whoever looks
for entry points: a manager started with it finds ``--provider instant`` as it would find any other
provider (``docs/providers.md``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mcm.driver.discovery import ENTRY_POINT_GROUP

NAME: Final = "instant"
_ROOT = Path(__file__).parents[2]
_PACKAGE = "mcm_bench_instant-1.0.dist-info"
_METADATA = "Metadata-Version: 2.1\nName: mcm-bench-instant\nVersion: 1.0\n"


def write(folder: Path) -> None:
    """Make ``folder`` one that declares the provider, to be put on ``PYTHONPATH``."""
    package = folder / _PACKAGE
    package.mkdir(parents=True, exist_ok=True)
    (package / "METADATA").write_text(_METADATA)
    entry = f"[{ENTRY_POINT_GROUP}]\n{NAME} = bench.instant.provider:create\n"
    (package / "entry_points.txt").write_text(entry)


def environment(folder: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment of a process that is to find the provider in ``folder``."""
    before = environ.get("PYTHONPATH", "")
    places = [str(folder), str(_ROOT), *([before] if before else [])]
    return {**environ, "PYTHONPATH": os.pathsep.join(places)}
