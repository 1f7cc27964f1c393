from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeVar

import pytest

from mcm.client.errors import Forbidden, KubeError, RequestTimeout
from mcm.client.requests import Call
from mcm.client.server_version import ServerVersion
from mcm.client.transport import Response, StreamResponse
from mcm.client.verbs import ObjectReader

R = TypeVar("R")


class Server(ObjectReader):
    """Answers one path, with what it has at the time."""

    def __init__(self, *answers: bytes | KubeError) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def perform(self, call: Call, read: Callable[[Response], R]) -> R:
        assert call.path == "/version"
        self.asked += 1
        answer = self._answers.pop(0)
        if isinstance(answer, KubeError):
            raise answer
        return read(Response(status=200, headers={}, body=answer))

    def follow(
        self, call: Call, *, read_timeout: float | None
    ) -> AbstractAsyncContextManager[StreamResponse]:
        raise AssertionError("nobody watches a version")


def version(major: str, minor: str) -> bytes:
    return f'{{"major": "{major}", "minor": "{minor}", "gitVersion": "v"}}'.encode()


@pytest.mark.parametrize(
    ("answer", "new_enough"),
    [
        (version("1", "28"), True),
        (version("1", "28+"), True),
        (version("1", "31-eks"), True),
        (version("2", "0"), True),
        (version("1", "27"), False),
        (version("1", "9"), False),
        (version("0", "99"), False),
        (version("", ""), False),
        (version("one", "28"), False),
        (b"{}", False),
        (b"<html>", False),
        (b'{"major": 1, "minor": 28}', False),
        (Forbidden(403), False),
        (RequestTimeout("no answer"), False),
    ],
)
async def test_what_a_server_says_of_its_age(answer: bytes | KubeError, new_enough: bool) -> None:
    assert await ServerVersion(Server(answer)).is_at_least(1, 28) is new_enough


async def test_a_server_is_asked_until_it_answers_and_never_again() -> None:
    server = Server(Forbidden(403), version("1", "30"))
    known = ServerVersion(server)
    answers = [await known.is_at_least(1, minor) for minor in (28, 30, 31)]
    assert answers == [False, True, False]
    assert server.asked == 2
