"""client-go as a contestant: built once, and who cannot build it is told why."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from bench import client_go
from bench.client_go import CannotBuild, place, program
from bench.entrants import CLIENT_GO, Course, entered
from bench.race import Times, Weight
from bench.replay import Script, replaying


def _environment(tmp_path: Path, go: str | None) -> dict[str, str]:
    """An empty cache, and a ``go`` that is the shell script given, or none."""
    tools = tmp_path / "bin"
    tools.mkdir()
    if go is not None:
        (tools / "go").write_text(f"#!/bin/sh\n{go}\n")
        (tools / "go").chmod(0o755)
    return {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def test_without_go_it_takes_no_part_and_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(CannotBuild, match="Go is not installed"):
        program(_environment(tmp_path, None))


def test_a_build_that_fails_is_told_by_its_last_line_and_leaves_nothing(tmp_path: Path) -> None:
    environment = _environment(tmp_path, "echo first >&2; echo 'no such module' >&2; exit 1")
    with pytest.raises(CannotBuild, match=r"^no such module$"):
        program(environment)
    assert list(place(environment).parent.iterdir()) == []


def test_it_is_built_once_by_its_sources(tmp_path: Path) -> None:
    # $5 is what stands behind -o.
    environment = _environment(tmp_path, 'echo "$GOSUMDB $GOFLAGS" > "$5"')
    built = program(environment)
    assert built.path == place(environment)
    assert built.path.read_text() == "off -mod=readonly\n"
    (tmp_path / "bin" / "go").unlink()
    assert program(environment) == built


def test_who_cannot_take_part_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def unbuilt() -> client_go.Program:
        raise CannotBuild("no Go")

    monkeypatch.setattr("bench.entrants.program", unbuilt)
    present, missing = entered(["mcm", CLIENT_GO])
    assert present.keys() == {"mcm"}
    assert missing == {CLIENT_GO: "no Go"}


@pytest.mark.skipif(not place().exists(), reason="not built yet: python -m bench.informer does")
@pytest.mark.parametrize("kind", ["machines", "nodes"])
async def test_its_informer_mirrors_every_object_and_hands_over_every_event(kind: str) -> None:
    course = Course(kind, count=30, rounds=2)
    entrant = entered([CLIENT_GO])[0][CLIENT_GO]
    async with replaying(Script.of(kind, course.count, rounds=course.rounds)) as url:
        command = entrant.command(course, url)
        found = msgspec.json.decode(_output(*command), type=Times)
        weight = msgspec.json.decode(_output(*command, "--weigh"), type=Weight)
    assert (found.objects, found.events, found.queued) == (30, 60, 30)
    assert found.events_per_cpu_second > 0
    assert weight.objects == 30
    assert weight.bytes_per_object > 0


def _output(*command: str) -> bytes:
    return subprocess.run(command, capture_output=True, check=True, timeout=60).stdout
