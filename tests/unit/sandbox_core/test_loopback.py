from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import orjson
import pytest

from mcm.client.errors import TransportError
from mcm.client.transport import Request, Transport
from mcm.sandbox.loopback import LoopbackTransport
from mcm.simulation.virtualtime import run_virtual
from tests.unit.sandbox_core.line import FaultyLine, Line
from tests.unit.sandbox_core.workbench import CONFIG_MAPS, PODS, Workbench, config_map

Scene = Callable[[Line], Awaitable[None]]
Play = Callable[[Scene], None]


@pytest.fixture(params=[Line, FaultyLine], ids=["plain", "with no fault planned"])
def play(request: pytest.FixtureRequest) -> Play:
    """A transport that could fail behaves, while it does not, as one that cannot."""
    line: type[Line] = request.param

    async def main(scene: Scene) -> None:
        await scene(line())

    return lambda scene: run_virtual(lambda: main(scene))


def test_it_is_a_transport() -> None:
    transport: Transport = LoopbackTransport(Workbench().server)
    assert transport is not None


def test_requests_reach_the_server_and_answers_come_back(play: Play) -> None:
    async def scene(line: Line) -> None:
        assert await line.status("POST", CONFIG_MAPS, config_map("a")) == 201
        request = line.api.request("GET", f"{CONFIG_MAPS}/a")
        response = await line.transport.request(request)
        assert orjson.loads(response.body)["metadata"]["name"] == "a"
        assert response.headers["content-type"] == "application/json"
        assert line.now == 0.0

    play(scene)


def test_each_request_lets_others_run(play: Play) -> None:
    async def scene(line: Line) -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await line.api.clock.sleep(0)

        task = asyncio.create_task(other())
        for _ in range(10):
            await line.status("GET", PODS)
        assert turns >= 10
        task.cancel()

    play(scene)


def test_a_stream_of_a_plain_answer_is_one_chunk(play: Play) -> None:
    async def scene(line: Line) -> None:
        async with line.transport.stream(Request("GET", CONFIG_MAPS)) as response:
            assert response.status == 200
            chunks = [chunk async for chunk in response.chunks]
        assert orjson.loads(chunks[0])["kind"] == "ConfigMapList" and len(chunks) == 1

    play(scene)


def test_leaving_a_stream_ends_its_watch_in_the_same_moment(play: Play) -> None:
    async def scene(line: Line) -> None:
        line.api.create(CONFIG_MAPS, config_map("a"))
        async with line.transport.stream(line.watch_request()) as response:
            await anext(response.chunks)
            assert line.api.server.watch_count == 1
        assert line.api.server.watch_count == 0
        assert line.now == 0.0

    play(scene)


def test_a_cancelled_reader_ends_its_watch(play: Play) -> None:
    async def scene(line: Line) -> None:
        task = asyncio.create_task(line.watched())
        await line.api.clock.sleep(1)
        assert line.api.server.watch_count == 1
        task.cancel()
        await asyncio.wait({task})
        assert line.api.server.watch_count == 0

    play(scene)


def test_a_watch_may_be_read_as_one_answer(play: Play) -> None:
    async def scene(line: Line) -> None:
        line.api.create(CONFIG_MAPS, config_map("a"))
        response = await line.transport.request(line.watch_request())
        assert response.body.count(b"\n") == 1
        assert line.now == 100.0

    play(scene)


def test_a_silent_watch_is_given_up_after_the_read_timeout(play: Play) -> None:
    async def scene(line: Line) -> None:
        assert await line.watched(read_timeout=30) == ["RequestTimeout"]
        assert line.now == 30.0
        assert line.api.server.watch_count == 0

    play(scene)


def test_a_closed_transport_refuses_and_breaks_its_streams(play: Play) -> None:
    async def scene(line: Line) -> None:
        task = asyncio.create_task(line.watched())
        await line.api.clock.sleep(1)
        await line.transport.aclose()
        await line.transport.aclose()
        assert await task == ["TransportError"]
        with pytest.raises(TransportError):
            await line.status("GET", PODS)
        assert line.now == 1.0

    play(scene)
