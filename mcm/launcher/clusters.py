"""Which clusters ``mcm start`` works on: environment, then files in ``dev/``, then the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mcm.client.errors import ConfigurationError
from mcm.configuration.given import Given, Source

CONTROL_FILE = "control-kubeconfig.yaml"
TARGET_FILE = "target-kubeconfig.yaml"
SANDBOX_FILE = "sandbox-kubeconfig.yaml"


@dataclass(frozen=True, slots=True)
class Clusters:
    """Paths of the kubeconfigs to use; ``origin`` says where they came from."""

    control: str
    target: str
    origin: str


def source_of(environ: Mapping[str, str], dev_dir: Path) -> Source:
    """Return the clusters asked for as a source of flags; an empty one for the sandbox."""
    try:
        chosen = choose(environ, dev_dir)
    except ConfigurationError as error:
        return Source(problems=[str(error)])
    if chosen is None:
        return Source()
    return Source(
        given={
            "control-kubeconfig": Given(chosen.control, chosen.origin),
            "target-kubeconfig": Given(chosen.target, chosen.origin),
        }
    )


def choose(environ: Mapping[str, str], dev_dir: Path) -> Clusters | None:
    """Return the clusters asked for, or None for the sandbox.

    The target's kubeconfig alone serves as both. Raises ConfigurationError if only the control's
    is given, or a file named in the environment does not exist.
    """
    control, target = environ.get("CONTROL_KUBECONFIG", ""), environ.get("TARGET_KUBECONFIG", "")
    if control or target:
        _must_exist(CONTROL_KUBECONFIG=control, TARGET_KUBECONFIG=target)
        return _pair(control, target, "environment", "TARGET_KUBECONFIG")
    control, target = (_if_there(dev_dir / name) for name in (CONTROL_FILE, TARGET_FILE))
    if control or target:
        return _pair(control, target, str(dev_dir), str(dev_dir / TARGET_FILE))
    return None


def _pair(control: str, target: str, origin: str, missing: str) -> Clusters:
    if not target:
        raise ConfigurationError(
            f"{missing} is missing: give the cluster that machines join as well "
            "(or `none` in TARGET_KUBECONFIG for no such cluster)"
        )
    return Clusters(control or target, target, origin)


def _must_exist(**paths: str) -> None:
    for name, path in paths.items():
        if path and path != "none" and not Path(path).is_file():
            raise ConfigurationError(f"{name}: there is no file {path}")


def _if_there(path: Path) -> str:
    return str(path) if path.is_file() else ""
