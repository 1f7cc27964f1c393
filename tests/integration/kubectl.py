"""A real kubectl with a home of its own, pointed at one cluster and namespace."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

PATIENCE = 30.0
"""Seconds any one command may take."""


def find_kubectl() -> str | None:
    """Return the binary named by KUBECTL, on PATH, or where the test servers are kept."""
    named = os.environ.get("KUBECTL")
    if named:
        return named
    return shutil.which("kubectl") or shutil.which(
        "kubectl", path=os.environ.get("KUBEBUILDER_ASSETS", "")
    )


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Kubectl:
    binary: str
    home: Path
    kubeconfig: Path
    namespace: str = "default"
    extra: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *args: str, stdin: object = None) -> str:
        """Run a command that must succeed; return what it printed."""
        outcome = self.run(*args, stdin=stdin)
        assert outcome.code == 0, f"kubectl {' '.join(args)}: {outcome.err or outcome.out}"
        return outcome.out

    def fails(self, *args: str, stdin: object = None) -> str:
        """Run a command that must fail; return what it complained of."""
        outcome = self.run(*args, stdin=stdin)
        assert outcome.code != 0, f"kubectl {' '.join(args)} succeeded: {outcome.out}"
        return outcome.err

    def json(self, *args: str) -> Any:
        return json.loads(self(*args, "-o", "json"))

    def run(self, *args: str, stdin: object = None) -> Outcome:
        """Run a command; ``stdin`` is text, or a manifest or list of manifests."""
        done = subprocess.run(
            self._command(args),
            input=_text(stdin),
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def started(self, *args: str) -> Iterator[Reader]:
        """Run a command that goes on until the context is left."""
        with subprocess.Popen(
            self._command(args),
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as process:
            try:
                yield Reader(process)
            finally:
                process.terminate()
                process.wait(PATIENCE)

    def with_environment(self, **extra: str) -> Kubectl:
        return replace(self, extra={**self.extra, **extra})

    def _command(self, args: tuple[str, ...]) -> list[str]:
        return [self.binary, "--namespace", self.namespace, *args]

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self.home),
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.home / "cache"),
            **self.extra,
        }


class Reader:
    """The output of a command that still runs."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self.process = process
        self._descriptor = process.stdout.fileno()
        self._seen = ""
        self._rest = ""

    def until(self, *words: str) -> str:
        """Return the next line that holds all the words; fail if none comes in time."""
        while True:
            line = self._line()
            if all(word in line for word in words):
                return line

    def _line(self) -> str:
        while "\n" not in self._rest:
            readable, _, _ = select.select([self._descriptor], [], [], PATIENCE)
            chunk = os.read(self._descriptor, 65536) if readable else b""
            assert chunk, f"{'ended' if readable else 'silent'} after: {self._seen!r}"
            self._rest += chunk.decode()
            self._seen += chunk.decode()
        line, _, self._rest = self._rest.partition("\n")
        return line


def _text(stdin: object) -> str | None:
    if stdin is None or isinstance(stdin, str):
        return stdin
    if isinstance(stdin, list):
        return yaml.safe_dump_all(stdin)
    return json.dumps(stdin)
