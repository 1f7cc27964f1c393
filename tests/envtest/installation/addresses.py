"""Addresses for pods on the loopback interface, which no other run of tests gives out."""

from __future__ import annotations

import socket
from itertools import product
from typing import Self, final

_KUBELET_PORT = 10250


@final
class PodNetwork:
    """127.N.0.0/16, held by a bound socket while the context lasts: pods of several runs listen at
    the same ports."""

    def __enter__(self) -> Self:
        for number in range(1, 255):
            held = socket.socket()
            try:
                held.bind((f"127.{number}.0.1", _KUBELET_PORT))
            except OSError:
                held.close()
                continue
            self._held = held
            self._free = (
                f"127.{number}.{high}.{low}" for high, low in product(range(1, 255), repeat=2)
            )
            return self
        raise OSError("no network of the loopback interface is free")

    def __exit__(self, *exc_info: object) -> None:
        self._held.close()

    def next(self) -> str:
        """Return an address that no pod had before."""
        return next(self._free)
