"""Somebody who reads one answer of the page and types its commands, on a fleet of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import final

from tests.envtest.operations.person import Manifest, Person, rolling
from tests.envtest.operations.servers import Server
from tests.integration.faq import page

_NEVER_LONGER = 120.0


@final
class Reader:
    """``person`` looks after the deployment of that ``name``, with which its classes begin."""

    def __init__(self, server: Server, folder: Path, question: str, name: str) -> None:
        self.person = Person(server, name)
        self.name = name
        self._blocks = [block.text for block in page.blocks(question) if not block.test]
        self._typed: set[int] = set()
        self._environment = {
            **{k: v for k, v in os.environ.items() if "KUBECONFIG" not in k},
            "PATH": f"{_programs(folder, server.kubectl.binary)}:{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(server.kubectl.kubeconfig),
            "PYTHONPATH": str(page.ROOT),
            "DEPLOYMENT": name,
            "CLASS": f"{name}-other",
        }

    def follow(self, *scenarios: Callable[[Reader], None]) -> None:
        """Play what has to do with the question. All commands of the answer must get typed."""
        try:
            for scenario in scenarios:
                scenario(self)
        except BaseException as error:
            error.add_note(self.person.told())
            raise
        assert self._typed == set(range(len(self._blocks)))

    def type(self, block: int, *, code: int = 0, **names: str) -> str:
        """Type the answer's commands of this number; ``names`` are those that it leaves open."""
        text = self._blocks[block]
        self._typed.add(block)
        done = subprocess.run(
            ["/bin/bash", "-euo", "pipefail", "-c", text],
            env={**self._environment, **names}, capture_output=True, text=True, check=False,
            timeout=_NEVER_LONGER,
        )  # fmt: skip
        assert done.returncode == code, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout + (done.stderr if code else "")

    def fleet(self, replicas: int, *, surge: int = 1, unavailable: int = 0) -> list[str]:
        """Have so many machines, and wait for them; return their names."""
        template: Manifest = {"nodeTemplate": {"metadata": {"labels": {"pool": self.name}}}}
        strategy = rolling(surge=surge, unavailable=unavailable)
        self.person.create(replicas=replicas, machines=template, strategy=strategy)
        self.person.wait_until_rolled_out(machines=replicas)
        return self.person.names("mc")

    def node_of(self, machine: str) -> str:
        return self.person.field(".metadata.labels.node", f"mc/{machine}")

    def hold_with_a_budget(self) -> None:
        """Run a pod on the fleet's machine, under a budget that lets it never go."""
        labels = {"app": self.name}
        container = {"name": "main", "image": "x"}
        pod = {"nodeSelector": {"pool": self.name}, "containers": [container]}
        metadata = {"name": self.name}
        workload = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod},
            },
        }
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": labels}},
        }
        self.person("create", "-f", "-", stdin=[budget, workload])
        self.person.wait_for_field(".status.availableReplicas", 1, f"deployment/{self.name}")
        self.person.wait_for_field(".status.currentHealthy", 1, f"pdb/{self.name}")


def _programs(folder: Path, kubectl: str) -> Path:
    """Return a folder with ``mcm`` and ``kubectl``, found as a reader finds them."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, command in {"mcm": f"{sys.executable} -m mcm", "kubectl": kubectl}.items():
        script = programs / name
        if not script.exists():
            script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            script.chmod(0o755)
    return programs
