"""client-go's informer as a contestant: a program of its own, built from ``bench/go`` where Go is.

It speaks as :mod:`bench.race` does. What is built is kept in the user's cache, by its sources.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent / "go"

_MODULE = re.compile(r"k8s\.io/client-go (v[0-9.]+)")
_BUILD = ("go", "build", "-trimpath", "-buildvcs=false")
# The committed go.sum vouches for what is fetched. No C compiler is needed.
_ENVIRONMENT = {"CGO_ENABLED": "0", "GOSUMDB": "off", "GOFLAGS": "-mod=readonly"}
_PATIENCE = 900.0  # seconds: the first build fetches and compiles everything


class CannotBuild(Exception):
    """There is no program; the message says why."""


@dataclass(frozen=True, slots=True)
class Program:
    """``version`` is that of the library; ``race`` returns what to run for a race."""

    path: Path
    version: str

    def race(self, kind: str, url: str, *, last: str, indexed: Iterable[str]) -> Sequence[str]:
        """Return the command that races over ``kind`` to the version ``last``, with an index for
        each label in ``indexed``."""
        indexes = [argument for label in indexed for argument in ("--index", label)]
        return (str(self.path), kind, url, "--last", last, *indexes)


def program(environ: Mapping[str, str] = os.environ) -> Program:
    """Return the program, built now if it is not there. Raises CannotBuild."""
    found = _MODULE.search((SOURCES / "go.mod").read_text())
    if found is None:
        raise CannotBuild("bench/go/go.mod does not say which client-go")
    path = place(environ)
    if not path.exists():
        _build(path, environ)
    return Program(path, found[1].removeprefix("v"))


def place(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where the program is once it is built: changed sources are built anew."""
    files = (*sorted(SOURCES.glob("*.go")), SOURCES / "go.mod", SOURCES / "go.sum")
    sources = b"".join(file.read_bytes() for file in files)
    cache = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "mcm-bench" / hashlib.sha256(sources).hexdigest()[:12] / "client-go"


def _build(path: Path, environ: Mapping[str, str]) -> None:
    if shutil.which("go", path=environ.get("PATH")) is None:
        raise CannotBuild("Go is not installed (https://go.dev)")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two builds at a time must not write one file.
    part = path.with_name(f".client-go.{os.getpid()}")
    try:
        built = subprocess.run(
            [*_BUILD, "-o", str(part), "."],
            cwd=SOURCES,
            env={**environ, **_ENVIRONMENT},
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        if built.returncode:
            raise CannotBuild((built.stderr.strip().splitlines() or ["go build failed"])[-1])
        part.replace(path)
    except subprocess.TimeoutExpired:
        raise CannotBuild(f"go build took more than {_PATIENCE:.0f} seconds") from None
    finally:
        part.unlink(missing_ok=True)
