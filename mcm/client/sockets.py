"""Sockets that notice a dead peer: aiohttp sets no keepalive, and a watch may be silent for long.

A peer that has vanished without a word (a lost node, a dropped NAT entry) is found after about 50
seconds, whether bytes of ours are on the way or not.
"""

from __future__ import annotations

import socket

from aiohttp.connector import AddrInfoType

_OPTIONS: tuple[tuple[str, int], ...] = (
    ("TCP_NODELAY", 1),
    ("TCP_KEEPIDLE", 20),
    ("TCP_KEEPINTVL", 10),
    ("TCP_KEEPCNT", 3),
    ("TCP_USER_TIMEOUT", 50_000),  # milliseconds
)


def open_socket(address: AddrInfoType) -> socket.socket:
    """Make the socket for one address, as a ``socket_factory`` of aiohttp's connector."""
    family, kind, protocol, _, _ = address
    opened = socket.socket(family=family, type=kind, proto=protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _OPTIONS:
            option = getattr(socket, name, None)  # not every platform has all of them
            if option is not None:
                opened.setsockopt(socket.IPPROTO_TCP, option, value)
    except OSError:
        opened.close()
        raise
    return opened
