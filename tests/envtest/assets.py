"""Where the binaries of a real control plane are found: etcd, kube-apiserver, kubectl."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "KUBEBUILDER_ASSETS"
NAMES = ("etcd", "kube-apiserver", "kubectl")
HOW_TO_GET_THEM = "KUBEBUILDER_ASSETS=$(tests/envtest/servers/ensure)"

_ENSURE = Path(__file__).parent / "servers" / "ensure"
_LONGEST_BUILD = 1800.0


class AssetsMissing(Exception):
    """A binary is not there; the text says which, where, and how to get it."""


def locate(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder that holds all binaries.

    ``KUBEBUILDER_ASSETS`` wins; without it the cache of ``servers/ensure`` is used as it is, and
    with ``CI=true`` filled first. Raises AssetsMissing.
    """
    named = environ.get(VARIABLE)
    if named:
        return _complete(Path(named), VARIABLE)
    if environ.get("CI") == "true":
        return _complete(_ask("build", timeout=_LONGEST_BUILD), str(_ENSURE))
    return _complete(_ask("where", timeout=30.0), "the cache")


def _ask(what: str, *, timeout: float) -> Path:
    command = [str(_ENSURE)] if what == "build" else [str(_ENSURE), "--where"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode != 0:
        raise AssetsMissing(f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")
    return Path(done.stdout.strip())


def _complete(folder: Path, origin: str) -> Path:
    missing = [name for name in NAMES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise AssetsMissing(
            f"no {', '.join(missing)} in {folder} ({origin}); get them with {HOW_TO_GET_THEM}"
        )
    return folder
