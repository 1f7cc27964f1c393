"""A real helm with a home of its own, found where the tests keep it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[2] / "charts" / "mcm"
HOW_TO_GET_IT = "HELM=$(tests/charts/helm/ensure)"

_ENSURE = Path(__file__).parent / "helm" / "ensure"
_LONGEST_BUILD = 1800.0
_LONGEST_COMMAND = 120.0

Manifest = dict[str, Any]


class HelmMissing(Exception):
    """There is no helm; the text says where it was looked for, and how to get it."""


def locate(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the binary.

    ``HELM`` wins, then the cache of ``helm/ensure``, which is filled first with ``CI=true``, then
    what is on the path. Raises HelmMissing.
    """
    named = environ.get("HELM")
    if named:
        return _executable(Path(named), "HELM")
    building = environ.get("CI") == "true"
    command = [str(_ENSURE)] if building else [str(_ENSURE), "--where"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_LONGEST_BUILD, check=False
    )
    if done.returncode != 0:
        raise HelmMissing(f"{' '.join(command)} failed: {done.stderr.strip()[-2000:]}")
    cached = Path(done.stdout.strip())
    on_path = shutil.which("helm", path=environ.get("PATH"))
    if on_path and not cached.exists():
        return Path(on_path)
    return _executable(cached, "the cache")


def _executable(binary: Path, origin: str) -> Path:
    if not os.access(binary, os.X_OK):
        raise HelmMissing(f"no helm at {binary} ({origin}); get it with {HOW_TO_GET_IT}")
    return binary


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Helm:
    binary: Path
    home: Path
    kubeconfig: Path | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    rendered: dict[tuple[str, ...], str] = field(default_factory=dict, compare=False)

    def __call__(self, *arguments: str, values: object = None) -> str:
        """Run a command that must succeed; return what it printed."""
        outcome = self.run(*arguments, values=values)
        assert outcome.code == 0, f"helm {' '.join(arguments)}: {outcome.err}\n{outcome.out}"
        return outcome.out

    def fails(self, *arguments: str, values: object = None) -> str:
        """Run a command that must fail; return what it complained of."""
        outcome = self.run(*arguments, values=values)
        assert outcome.code != 0, f"helm {' '.join(arguments)} succeeded: {outcome.out[-2000:]}"
        return outcome.err

    def run(self, *arguments: str, values: object = None) -> Outcome:
        """Run a command; ``values`` are given as a values file is."""
        stdin = None
        if values is not None:
            arguments = (*arguments, "--values=-")
            stdin = yaml.safe_dump(values)
        done = subprocess.run(
            [str(self.binary), *arguments],
            input=stdin,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=_LONGEST_COMMAND,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def template(
        self, *arguments: str, values: object = None, release: str = "mcm", namespace: str = "mcm"
    ) -> list[Manifest]:
        """Return the manifests of the chart, those of its tests among them."""
        command = ("template", release, str(CHART), f"--namespace={namespace}", *arguments)
        wanted = (*command, repr(values))
        if wanted not in self.rendered:
            self.rendered[wanted] = self(*command, values=values)
        manifests = yaml.load_all(self.rendered[wanted], Loader=yaml.CSafeLoader)
        return [manifest for manifest in manifests if manifest]

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.home),
            # A cluster that happens to be configured is none of ours.
            "KUBECONFIG": str(self.kubeconfig or self.home / "none"),
            **self.extra,
        }
