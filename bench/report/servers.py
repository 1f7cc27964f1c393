"""Whether a real API server can take part: its binaries are cached, or Go can build them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Final

from bench.report.surroundings import ROOT

VARIABLE: Final = "KUBEBUILDER_ASSETS"
SANDBOX: Final = "none: the sandbox's"
_ENSURE: Final = str(ROOT / "tests" / "envtest" / "servers" / "ensure")
_NEEDED: Final = ("etcd", "kube-apiserver")


def at_hand(environ: MutableMapping[str, str], say: Callable[[str], None]) -> str:
    """Set ``KUBEBUILDER_ASSETS`` for the benches if it can be, and say what they have."""
    folder = _named(environ) or _cached()
    if folder is None and shutil.which("go"):
        say("building kube-apiserver and etcd, once; this takes some minutes")
        folder = _built(say)
    if folder is None:
        environ.pop(VARIABLE, None)
        return SANDBOX
    environ[VARIABLE] = str(folder)
    return _version(folder)


def _named(environ: MutableMapping[str, str]) -> Path | None:
    named = environ.get(VARIABLE)
    return _complete(Path(named)) if named else None


def _cached() -> Path | None:
    done = subprocess.run([_ENSURE, "--where"], capture_output=True, text=True, check=False)
    return _complete(Path(done.stdout.strip())) if done.returncode == 0 else None


def _built(say: Callable[[str], None]) -> Path | None:
    command = [_ENSURE, *_NEEDED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        say(f"they cannot be built: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        return None
    return _complete(Path(done.stdout.strip().splitlines()[-1]))


def _complete(folder: Path) -> Path | None:
    return folder if all(os.access(folder / name, os.X_OK) for name in _NEEDED) else None


def _version(folder: Path) -> str:
    command = [str(folder / "kube-apiserver"), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"kube-apiserver {done.stdout.strip().removeprefix('Kubernetes ') or 'unknown'}"
