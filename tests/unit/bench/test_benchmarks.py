"""The benchmarks run, and count right, at sizes that take no time. Speeds are not judged here."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench.footprint import resident
from bench.recorded_objects import KINDS
from bench.replay import Script, replaying
from bench.workqueue import CASES
from mcm.api import codec

_ROOT = Path(__file__).parents[3]


def _run(
    module: str, *arguments: str, flags: Sequence[str] = ("--json",), within: float = 100
) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments, *flags],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def informer() -> dict[str, Any]:
    sizes = {"machines": 20, "nodes": 10, "rounds": 2, "weighed": 5, "mixed": 15, "relists": 2}
    sizes["listed_pods"] = 40
    flags = [flag for name, value in sizes.items() for flag in (f"--{name}", str(value))]
    found = _run("bench.informer", *flags, "--repeat", "1", "--only", "mcm", "--only", "bare")
    assert found["bench"] == "informer"
    assert found["parameters"] == {**sizes, "repeat": 1}
    results: dict[str, Any] = found["results"]
    return results


@pytest.mark.parametrize(("kind", "objects"), [("machines", 20), ("nodes", 10)])
def test_a_race_mirrors_every_object_and_hands_over_every_event(
    informer: dict[str, Any], kind: str, objects: int
) -> None:
    row = informer[kind]["mcm"]
    assert row["failure"] == ""
    assert row["times"].keys() == {
        "objects",
        "events",
        "queued",
        "list_cpu_seconds",
        "list_wall_seconds",
        "events_per_cpu_second",
    }
    counts = (row["times"]["objects"], row["times"]["events"], row["times"]["queued"])
    assert counts == (objects, 2 * objects, objects)
    assert row["weight"]["objects"] == 5
    assert row["weight"]["bytes_per_object"] > 0


def test_the_bare_loop_that_ours_is_measured_by_reads_the_same(informer: dict[str, Any]) -> None:
    row = informer["machines"]["bare"]
    assert row["failure"] == ""
    counts = (row["times"]["objects"], row["times"]["events"], row["times"]["queued"])
    assert counts == (20, 40, 0)


def test_the_path_without_a_socket_takes_every_event_too(informer: dict[str, Any]) -> None:
    found = informer["in_process"]
    assert (found["objects"], found["events"], found["queued"]) == (20, 40, 20)


def test_mixed_objects_of_both_kinds_are_synced(informer: dict[str, Any]) -> None:
    assert informer["mixed"]["objects"] == 15
    assert informer["mixed"].keys() == {"objects", "cpu_seconds", "wall_seconds", "rss_bytes"}


def test_memory_is_read_after_the_first_list_and_after_each_relist(
    informer: dict[str, Any],
) -> None:
    found = informer["relists"]
    assert (found["objects"], found["relists"]) == (20, 2)
    assert len(found["rss_bytes"]) == 3


@pytest.mark.skipif(not resident(), reason="there is no /proc to read resident memory from")
async def test_a_relist_that_brings_everything_anew_gives_the_old_room_back() -> None:
    """Of the generation of objects before, less than two thirds of its memory may stay."""
    count, times = 4_000, 3
    async with replaying(Script(machines=count, relists=times)) as url:
        command = ("bench.footprint", "relists", url, "--relists", str(times))
        found = await asyncio.to_thread(_run, *command, flags=())
    assert (found["objects"], found["relists"]) == (count, times)
    first, *_, last = found["rss_bytes"]
    assert last - first < count * 5.4 * 1024 * 2 / 3


def test_the_peak_of_a_list_is_read_both_ways(informer: dict[str, Any]) -> None:
    for way in ("streamed", "in pages"):
        found = informer["lists_of_pods"][way]
        assert found["objects"] == 40
        assert found["longest_block_seconds"] > 0
        if resident():
            assert found["first_peak_rss_bytes"] > 0
            assert found["relist_peak_rss_bytes"] > 0


def test_the_report_says_what_was_measured(informer: dict[str, Any]) -> None:
    assert informer["versions"].keys() == {"mcm", "bare"}
    assert informer["missing"] == {}
    assert informer["share_of_bare"].keys() == {"machines", "nodes"}


@pytest.mark.parametrize("name", KINDS)
def test_recorded_bytes_are_what_a_server_sends(name: str) -> None:
    kind = KINDS[name]
    listed = codec.decode_list(kind.resource, kind.listed(3))
    events = [orjson.loads(line) for line in kind.events(3, 2)]
    versions = [int(item.metadata.resource_version) for item in listed.items]
    versions += [int(e["object"]["metadata"]["resourceVersion"]) for e in events]
    assert versions == sorted(set(versions))
    assert int(listed.metadata.resource_version) < versions[3]
    assert str(versions[-1]) == kind.last_version(3, 2)
    assert len(events) == 6


def test_every_work_queue_case_hands_out_what_it_should() -> None:
    found = _run("bench.workqueue", "--keys", "50", "--repeat", "1")["results"]
    assert found.keys() == CASES.keys()
    handed_out = {name: cost["handed_out"] for name, cost in found.items()}
    assert handed_out == {name: 150 if name == "retried" else 50 for name in CASES}
    assert {cost["operations"] for cost in found.values()} == {150, 300, 175, 200, 500}
