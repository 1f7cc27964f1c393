"""A person who looks after one deployment with kubectl: what they type, and what they see."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, final

from mcm.clock import SystemClock
from tests.envtest.operations.servers import Server
from tests.integration.manifests import columns

API_VERSION = "machine.sapcloud.io/v1alpha1"
PATIENCE = 120.0
"""Seconds to wait for what takes a few on a quiet machine."""
FAST = {
    "createLatency": "100ms",
    "deleteLatency": "100ms",
    "bootLatency": "300ms",
    "joinLatency": "200ms",
}
_ONE_WAIT = 10
_LOOK_EVERY = 0.5


Manifest = dict[str, object]


@dataclass(frozen=True)
class Event:
    type: str
    reason: str
    message: str


@final
class Person:
    """``name`` is that of the deployment. What is typed and printed is kept in ``transcript``."""

    def __init__(self, server: Server, name: str) -> None:
        self.name = name
        self.server = server
        self.transcript: list[str] = []
        self._kubectl = server.kubectl
        self._clock = SystemClock()
        self._started = self._clock.monotonic()

    # ---- typing ---------------------------------------------------------------------------------

    def __call__(self, *args: str, stdin: object = None) -> str:
        """Run a command that must succeed; return what it printed."""
        outcome = self._kubectl.run(*args, stdin=stdin)
        self._note(args, outcome.out + outcome.err)
        assert outcome.code == 0, f"kubectl {' '.join(args)}: {outcome.err or outcome.out}"
        return outcome.out

    def fails(self, *args: str, stdin: object = None) -> str:
        """Run a command that must fail; return what it complained of."""
        outcome = self._kubectl.run(*args, stdin=stdin)
        self._note(args, outcome.out + outcome.err)
        assert outcome.code != 0, f"kubectl {' '.join(args)} succeeded: {outcome.out}"
        return outcome.err

    def create_class(self, name: str, **provider_spec: object) -> str:
        """Apply a class of this scenario's own; return its name."""
        full = f"{self.name}-{name}"
        self("apply", "-f", "-", stdin=machine_class(full, self._kubectl.namespace, provider_spec))
        return full

    def create(self, *, replicas: int, machines: Manifest | None = None, **spec: Any) -> None:
        """Apply the deployment and its class ``small``; ``machines`` goes into the template."""
        self.create_class("small")
        template = {"class": {"kind": "MachineClass", "name": f"{self.name}-small"}}
        whole = {
            "replicas": replicas,
            "selector": {"matchLabels": {"pool": self.name}},
            "strategy": rolling(surge=1, unavailable=0),
            "template": {
                "metadata": {"labels": {"pool": self.name}},
                "spec": {**template, **(machines or {})},
            },
        }
        manifest = {
            "apiVersion": API_VERSION,
            "kind": "MachineDeployment",
            "metadata": {"name": self.name},
            "spec": {**whole, **spec},
        }
        self("apply", "-f", "-", stdin=manifest)

    def scale(self, replicas: int) -> None:
        out = self("scale", "mcd", self.name, f"--replicas={replicas}")
        assert out == f"machinedeployment.machine.sapcloud.io/{self.name} scaled\n"

    def patch(self, change: object, *, target: str = "") -> None:
        """Change the deployment, or another object (``kind/name``), as an edit would."""
        kind, _, name = (target or f"mcd/{self.name}").partition("/")
        self("patch", kind, name, "--type=merge", "-p", json.dumps(change))

    def edit_class(self, name: str) -> None:
        """Give the template another class of this scenario."""
        change = {"class": {"kind": "MachineClass", "name": f"{self.name}-{name}"}}
        self.patch({"spec": {"template": {"spec": change}}})

    # ---- seeing ---------------------------------------------------------------------------------

    def field(self, path: str, target: str = "") -> str:
        kind, _, name = (target or f"mcd/{self.name}").partition("/")
        return self("get", kind, name, "-o", f"jsonpath={{{path}}}")

    def table(self, kind: str, *options: str) -> list[dict[str, str]]:
        """Return the rows of the objects of this scenario, by columns' names."""
        printed = self("get", kind, *self._selection(kind), *options)
        if not printed:
            return []
        names = columns(printed)
        offsets = [m.start() for m in re.finditer(r"\S+(?: \S+)*", printed.splitlines()[0])]
        return [
            dict(zip(names, _cells(line, offsets), strict=True))
            for line in printed.splitlines()[1:]
        ]

    def row(self, kind: str = "mcd", *options: str) -> dict[str, str]:
        (row,) = self.table(kind, *options)
        return row

    def describe(self, target: str = "") -> str:
        kind, _, name = (target or f"mcd/{self.name}").partition("/")
        return self("describe", kind, name)

    def condition(self, type_: str, target: str = "") -> tuple[str, str, str]:
        """Return status, reason and message of a condition; empty texts if there is none."""
        found = self.field(_condition(type_, target), target)
        shown = json.loads(found) if found else {}
        return shown.get("status", ""), shown.get("reason", ""), shown.get("message", "")

    def events(self, target: str = "") -> list[Event]:
        kind, _, name = (target or f"mcd/{self.name}").partition("/")
        selector = f"--field-selector=involvedObject.name={name},involvedObject.kind={_KINDS[kind]}"
        shown = json.loads(self("get", "events", selector, "-o", "json"))["items"]
        return [
            Event(e["type"], e["reason"], e["message"])
            for e in sorted(shown, key=lambda e: str(e["eventTime"]))
        ]

    def names(self, kind: str) -> list[str]:
        """Return the names of the objects of this scenario."""
        printed = self("get", kind, *self._selection(kind), "-o", "name").split()
        return sorted(line.partition("/")[2] for line in printed)

    def staying(self, kind: str) -> list[str]:
        """Return the names of those that nobody deletes, whatever phase they show."""
        going = "{range .items[?(@.metadata.deletionTimestamp)]}{.metadata.name} {end}"
        asked = self("get", kind, *self._selection(kind), "-o", f"jsonpath={going}").split()
        return sorted(set(self.names(kind)) - set(asked))

    # ---- waiting --------------------------------------------------------------------------------

    def wait(self, what: str, target: str = "") -> None:
        """``kubectl wait --for=WHAT``, for as long as the machine needs that this runs on."""
        target = target or f"mcd/{self.name}"
        deadline = self._clock.monotonic() + PATIENCE
        args = ("wait", target, f"--for={what}", f"--timeout={_ONE_WAIT}s")
        while (outcome := self._kubectl.run(*args)).code != 0:
            assert "timed out" in outcome.err, outcome.err
            assert self._clock.monotonic() < deadline, f"in vain: kubectl {' '.join(args)}"
        self._note(args, outcome.out)

    def wait_for_field(self, path: str, value: object, target: str = "") -> None:
        self.wait(f"jsonpath={{{path}}}={value}", target)

    def wait_for_condition(self, type_: str, reason: str, target: str = "") -> None:
        self.wait_for_field(f"{_condition(type_, target)}.reason", reason, target)

    def wait_until_rolled_out(self, *, machines: int) -> None:
        """Wait until the present template is all there is, and serves."""
        fields = ("availableReplicas", "updatedReplicas", "replicas")
        shown = "".join(f"{{.status.{field}}} " for field in fields)
        said = '{.status.conditions[?(@.type=="Progressing")].reason}'
        seen = " {.metadata.generation} {.status.observedGeneration}"
        template = f"-o=jsonpath={shown}{said}{seen}"

        def over() -> bool:
            *counts, reason, wanted, observed = self("get", "mcd", self.name, template).split(" ")
            complete = reason == "NewMachineSetAvailable" and wanted == observed
            return complete and counts == [str(machines)] * len(fields)

        self.until(over, what="the rollout is over")

    def until(self, condition: Callable[[], bool], *, what: str) -> None:
        deadline = self._clock.monotonic() + PATIENCE
        while not condition():
            assert self._clock.monotonic() < deadline, f"in vain: {what}"
            threading.Event().wait(_LOOK_EVERY)

    # ---- what is not typed ----------------------------------------------------------------------

    def told(self) -> str:
        return "\n".join(self.transcript)

    def _note(self, args: tuple[str, ...], printed: str) -> None:
        passed = self._clock.monotonic() - self._started
        self.transcript.append(f"[{passed:5.1f}] $ kubectl {' '.join(args)}\n{printed.rstrip()}")

    def _selection(self, kind: str) -> Iterator[str]:
        yield from (self.name,) if kind == "mcd" else ("-l", f"pool={self.name}")


_KINDS = {"mcd": "MachineDeployment", "mcs": "MachineSet", "mc": "Machine"}


def rolling(*, surge: int | str, unavailable: int | str) -> Manifest:
    numbers = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"type": "RollingUpdate", "rollingUpdate": numbers}


def machine_class(name: str, namespace: str, provider_spec: Manifest) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": "MachineClass",
        "metadata": {"name": name},
        "provider": "simulated",
        "secretRef": {"name": "cloud", "namespace": namespace},
        "nodeTemplate": {
            "capacity": {"cpu": "2", "gpu": "0", "memory": "4Gi"},
            "instanceType": "sim.small",
            "region": "here",
            "zone": "here-a",
        },
        "providerSpec": {**FAST, **provider_spec},
    }


def _condition(type_: str, target: str) -> str:
    """Where a condition stands: a set's not where ``kubectl wait --for=condition`` looks."""
    field = "machineSetCondition" if target.startswith("mcs/") else "conditions"
    return f'.status.{field}[?(@.type=="{type_}")]'


def _cells(line: str, offsets: list[int]) -> Iterator[str]:
    for start, end in zip(offsets, [*offsets[1:], len(line)], strict=True):
        yield line[start : max(start, end)].strip()
