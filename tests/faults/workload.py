"""Somebody who creates, changes and deletes machines, in bursts, on a few names."""

from __future__ import annotations

import random as randomness
from contextlib import suppress
from typing import final

import msgspec

from mcm.api.machine import MACHINES, Machine
from mcm.client.errors import AlreadyExists, Conflict, NotFound, TransportError
from mcm.client.verbs import ObjectWriter
from mcm.clock import Clock

NAMESPACE = "fleet"
FINALIZER = "machine.sapcloud.io/machine-controller"
NAMES = 14
_CLASSES = ("small", "large", "huge")
_NOTES = ("plain", "next\u0085line", "para\u2029graph", "tab\tand\r\nbreak", "größe 😀")


@final
class Workload:
    def __init__(self, verbs: ObjectWriter, *, clock: Clock, random: randomness.Random) -> None:
        self._verbs = verbs
        self._clock = clock
        self._random = random
        self._done = 0

    async def go_on(self, writes: int) -> None:
        """Write in bursts, with pauses between, until so many have been done."""
        wanted = self._done + writes
        while self._done < wanted:
            await self.burst(self._random.randint(1, 12))
            await self._clock.sleep(self._random.choice((0.0, 0.005, 0.02, 0.06)))

    async def burst(self, writes: int) -> None:
        """Try so many writes in a row."""
        for _ in range(writes):
            # With several writers and lost answers, these are part of life.
            with suppress(NotFound, AlreadyExists, Conflict, TransportError):
                await self._write(f"m{self._random.randrange(NAMES)}")
                self._done += 1

    async def _write(self, name: str) -> None:
        chance = self._random.random()
        if chance < 0.3:
            await self._verbs.create(MACHINES, self._machine(name), namespace=NAMESPACE)
        elif chance < 0.5:
            await self._verbs.delete(MACHINES, name, namespace=NAMESPACE)
        elif chance < 0.6:
            await self._patch(name, {"metadata": {"finalizers": None}})
        elif chance < 0.75:
            phase = self._random.choice(("Pending", "Running", "Failed", "Terminating"))
            status: dict[str, object] = {"status": {"currentStatus": {"phase": phase}}}
            await self._verbs.patch(
                MACHINES, name, status, namespace=NAMESPACE, subresource="status"
            )
        else:
            await self._patch(name, self._change())

    async def _patch(self, name: str, patch: dict[str, object]) -> None:
        await self._verbs.patch(MACHINES, name, patch, namespace=NAMESPACE)

    def _change(self) -> dict[str, object]:
        note, node = self._random.choice(_NOTES), f"node-{self._random.randrange(6)}"
        changes: tuple[dict[str, object], ...] = (
            {"metadata": {"annotations": {"note": note}}},
            {"metadata": {"labels": {"node": node}}},
            {"spec": {"class": {"name": self._random.choice(_CLASSES)}}},
            {"spec": {"providerID": f"vm:///{self._random.randrange(1000)}"}},
        )
        return self._random.choice(changes)

    def _machine(self, name: str) -> Machine:
        held = self._random.random() < 0.4
        body = {
            "metadata": {
                "name": name,
                "namespace": NAMESPACE,
                "finalizers": [FINALIZER] if held else [],
                "annotations": {"note": self._random.choice(_NOTES)},
            },
            "spec": {"class": {"kind": "MachineClass", "name": self._random.choice(_CLASSES)}},
        }
        return msgspec.convert(body, Machine)
