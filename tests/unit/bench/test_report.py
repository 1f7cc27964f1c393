"""What runs all benches: it keeps what was measured, names what failed, and draws pictures."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from bench.report import charts, servers
from bench.report.page import section_of, write
from bench.report.plan import BENCHES, Bench
from bench.report.record import Record, Unreadable, keep, parsed, read
from bench.report.running import run_all
from bench.report.section import Headline, Table
from bench.report.sections import SECTIONS
from bench.report.surroundings import observed

_ROOT = Path(__file__).parents[3]
_HERE = observed(servers.SANDBOX)
_COST = {"keys": 10, "handed_out": 10, "operations": 30, "operations_per_cpu_second": 600_000}
_QUEUE = Record("workqueue", ("python",), 1.0, _HERE, {"keys": 10}, {"plain": _COST})


def _made_up(name: str, seconds: int = 60) -> Bench:
    return Bench(name, seconds, "made up", package="tests.unit.bench.made_up")


def _run(tmp_path: Path, *benches: Bench) -> tuple[list[Record], list[str]]:
    said: list[str] = []
    kept = partial(keep, folder=tmp_path)
    return run_all(benches, _HERE, tmp_path, short=True, keep=kept, say=said.append), said


def test_a_bench_that_fails_is_named_and_takes_nothing_from_the_others(tmp_path: Path) -> None:
    benches = (_made_up("crashing"), _made_up("silent"), _made_up("strange"))
    records, said = _run(tmp_path, *benches)
    assert [bool(record.results) for record in records] == [False, False, True]
    assert records[0].failure == "exit code 1: the server is gone"
    assert records[1].failure.startswith("printed no JSON")
    assert len(said) == 2 * len(benches)
    assert {record.bench: record for record in read(tmp_path)} == {r.bench: r for r in records}
    page = write(records, [], tmp_path).read_text()
    assert "`crashing` failed: exit code 1: the server is gone (`raw/crashing.log`)" in page
    assert (tmp_path / "raw" / "crashing.log").read_text() == "the server is gone\n"


def test_a_bench_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bench, "patience", 0.5)
    (record,), _ = _run(tmp_path, _made_up("endless"))
    assert record.failure.startswith("took more than 0 s: ")


@pytest.mark.parametrize("output", [b"", b"[]", b'{"bench": "x"}', b'{"results": 3}', b"{"])
def test_what_is_no_result_is_refused(output: bytes) -> None:
    with pytest.raises(Unreadable):
        parsed(output)


def test_a_file_that_is_no_record_is_named(tmp_path: Path) -> None:
    path = keep(_QUEUE, tmp_path)
    path.write_text('{"bench": 3}')
    with pytest.raises(Unreadable, match=r"workqueue\.json"):
        read(tmp_path)


def test_numbers_of_an_unknown_shape_are_shown_bare(tmp_path: Path) -> None:
    (record,), _ = _run(tmp_path, _made_up("strange"))
    assert section_of(record).tables[0].rows == [("fast, seconds", "2.5")]
    changed = replace(_QUEUE, results={"plain": {"keys": "many"}, "rest": {"keys": 3}})
    assert section_of(changed).tables[0].rows == [("rest, keys", "3")]


def test_the_page_tells_conditions_aims_and_spread(tmp_path: Path) -> None:
    slower = replace(_QUEUE, results={"plain": _COST | {"operations_per_cpu_second": 500_000}})
    page = write([_QUEUE], [[slower]], tmp_path).read_text()
    assert "| work queue, plain | 600,000 operations / CPU s | more |" in page
    assert "500,000 – 600,000, 2 runs" in page
    assert _HERE.python in page
    assert _HERE.machine in page
    assert "- `fleet` was not run" in page
    assert "![Work queue: operations a CPU second (more is better)](pictures/workqueue.svg)" in page
    assert (tmp_path / "pictures" / "workqueue.svg").is_file()


@pytest.mark.parametrize(
    ("value", "better", "met"), [(5.1, "less", True), (5.3, "less", False), (5.3, "more", True)]
)
def test_an_aim_is_a_bound_on_the_good_side(value: float, better: Any, met: bool) -> None:
    assert Headline("x", value, "", better, aim=5.2).met is met


def test_what_stands_in_a_table_cannot_break_it() -> None:
    assert Table("", ("a", "b"), [("x|y\nz", "1")]).markdown().splitlines()[-1] == "| x\\|y z | 1 |"


_PICTURES = (
    charts.ranking("a", "T", {"mcm": 3.0, "other": 1.0}, axis="events", caption="", ours="mcm"),
    charts.ranking("b", "T", {"none": 0.0}, axis="events", caption=""),
    charts.groups("c", "T", ["x", "y"], {"mcm": [1, None], "aim": [2, 3]}, axis="s", caption=""),
    charts.lines("d", "T", {"q": [(0, 1), (1, 5)]}, x_axis="s", y_axis="keys", caption=""),
    charts.lines("e", "T", {"q": []}, x_axis="s", y_axis="keys", caption=""),
)


@pytest.mark.parametrize("picture", _PICTURES, ids=lambda p: p.name)
def test_a_picture_is_whole_and_fetches_nothing(picture: charts.Picture) -> None:
    root = ElementTree.fromstring(picture.svg)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not tags & {"image", "foreignObject"}
    scripts = [element for element in root.iter() if element.tag.endswith("}script")]
    assert not any("href" in name for element in scripts for name in element.attrib)
    assert "@import" not in picture.svg.decode()


def test_a_long_line_is_thinned_but_keeps_its_peak() -> None:
    points = [(float(x), 1000.0 if x == 7777 else 1.0) for x in range(20_000)]
    thinned = charts._thinned(points)
    assert len(thinned) <= 400
    assert (7777.0, 1000.0) in thinned


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.123456, "0.123"), (14.06, "14.1"), (99.99, "100"), (666_544, "667,000")],
)
def test_numbers_are_rounded_to_what_means_something(value: float, text: str) -> None:
    assert charts.number(value) == text


def test_the_short_forms_take_less_than_ten_minutes() -> None:
    assert sum(bench.seconds for bench in BENCHES) < 600


def test_runs_do_not_dirty_the_tree_but_the_baseline_is_kept() -> None:
    ignored = ["bench/results/2026-01-01T000000Z/README.md", "bench/results/latest"]
    kept = "bench/results/baseline/README.md"
    command = ["git", "check-ignore", *ignored, kept]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    if done.returncode == 128:
        pytest.skip("this is no git checkout")
    assert done.stdout.split() == ignored


def test_without_binaries_and_go_the_sandbox_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "_cached", lambda: None)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    environ = {servers.VARIABLE: "/nowhere"}
    assert servers.at_hand(environ, print) == servers.SANDBOX
    assert environ == {}


def test_a_page_can_be_made_anew_of_what_was_kept(tmp_path: Path) -> None:
    keep(_QUEUE, tmp_path / "run")
    command = [sys.executable, "-m", "bench.report", "--redraw", str(tmp_path / "run")]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "README.md").is_file()
    done = subprocess.run([*command[:-1], str(tmp_path)], cwd=_ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "holds no results" in done.stdout


# ---- what each bench's results look like --------------------------------------------------------

_TIMES = {"events": 20, "list_cpu_seconds": 0.1, "events_per_cpu_second": 70_000}
_RACE = {
    "mcm": {"times": _TIMES, "weight": {"bytes_per_object": 6000}, "failure": ""},
    "bare": {"times": _TIMES | {"events_per_cpu_second": 90_000}, "weight": None, "failure": ""},
    "aiok8s": {"times": None, "weight": None, "failure": "gone"},
}
_DELAYS = {"count": 3, "p50": 0.1, "p99": 0.4, "most": 0.5}
_PHASE = {
    "name": "create",
    "machines": 500,
    "seconds": 4.0,
    "own_writes_a_machine": 5.1,
    "events_a_machine": 1.0,
    "all_writes_a_machine": 7.0,
    "cpu_milliseconds_a_machine": 4.0,
    "cpu_seconds": 2.0,
    "efficiency": 0.8,
    "event_to_write": _DELAYS,
    "queue_depth": [[0.0, 1], [1.0, 300]],
}
_RUN = {
    "manager": "mcm",
    "machines": 500,
    "server": "real",
    "server_version": "v1.32.0",
    "phases": [_PHASE, _PHASE | {"name": "kill", "efficiency": None, "event_to_write": None}],
    "peak_resident_bytes": 100 * 2**20,
    "raw_rates": {"rates": {"POST machines": 1490.0}},
}
_SPREAD = {"least": 0.4, "median": 0.5, "most": 0.9}
_LOOK = {"cpu_percent": _SPREAD, "wake_ups_per_second": _SPREAD, "writes": 0, "seconds": 8.0}
_COLD = {"synced": 9.0, "leading": 9.5, "first_act": 10.0, "cpu_seconds": 8.0}
_COLD |= {"resident_mib": 500.0, "peak_mib": 600.0}
_FAILOVER = {"won": 14.0, "first_act": 0.2, "standby_resident_mib": 500.0}
_GROWN = {"phase": "roll", "fleet": 100, "cpu_ms": 0.0, "calls": 900.0, "writes": 14.0}
_GROWN |= {"adds": 20.0, "watch_events": 30.0}

_PARAMETERS: dict[str, dict[str, Any]] = {"fleet": {"bootstrap_tokens": False}}
_RESULTS: dict[str, dict[str, Any]] = {
    "informer": {
        "machines": _RACE,
        "nodes": _RACE,
        "versions": {"mcm": "0.1.0"},
        "missing": {"kopf": "not installed"},
        "relists": {"rss_bytes": [100, 105, 110]},
    },
    "fleet": {"runs": [_RUN, _RUN | {"manager": "other", "raw_rates": None}]},
    "steady": {
        "objects": 120_000,
        "resident_mib": 500.0,
        "peak_mib": 600.0,
        "quiet": _LOOK,
        "heartbeats": _LOOK,
    },
    "startup": {
        "objects": 120_000,
        "cold": [_COLD, _COLD],
        "failover": [_FAILOVER | {"standby_cpu_percent": 1.0}],
    },
    "growth": {
        "costs": [_GROWN, _GROWN | {"fleet": 1000, "calls": 950.0}],
        "growth": {"roll": {"calls": 1.056}},
    },
}


@pytest.mark.parametrize(
    ("bench", "headline", "value", "aim", "pictures"),
    [
        ("informer", "informer, Machines: share of the bare loop", 7 / 9, 0.7, 4),
        ("informer", "memory after 2 lists that bring all anew, by the first", 1.1, 1.15, 4),
        ("fleet", "create 500 machines: own writes a machine", 5.1, 5.2, 6),
        ("fleet", "create 500 machines: efficiency", 0.8, 0.75, 6),
        ("fleet", "peak memory, 500 machines", 100.0, 110.0, 6),
        ("steady", "120,000 objects at rest: CPU", 0.5, 1.0, 1),
        ("startup", "120,000 objects: standby acts after", 0.2, 1.0, 1),
        ("growth", "roll: a machine's function calls, 1,000 by 100", 1.056, 1.1, 1),
    ],
)
def test_results_become_numbers_with_aims_and_pictures(
    bench: str, headline: str, value: float, aim: float, pictures: int
) -> None:
    parameters = _PARAMETERS.get(bench, {})
    section = section_of(Record(bench, ("python",), 1.0, _HERE, parameters, _RESULTS[bench]))
    (found,) = [line for line in section.headlines if line.what == headline]
    assert found.value == pytest.approx(value)
    assert found.aim == aim
    assert len(section.pictures) == pictures
    assert section.tables
    for picture in section.pictures:
        assert "(less is better)" in picture.title or picture.caption
        ElementTree.fromstring(picture.svg)


@pytest.mark.parametrize(
    ("parameters", "tokens"),
    [({"bootstrap_tokens": False}, False), ({"bootstrap_tokens": True}, True), ({}, True)],
    ids=["without", "with", "kept before there was a choice"],
)
def test_a_fleet_with_tokens_is_never_taken_for_one_without(
    parameters: dict[str, Any], tokens: bool
) -> None:
    run = _RUN | {"phases": [_PHASE, _PHASE | {"name": "roll"}]}
    record = Record("fleet", ("python",), 1.0, _HERE, parameters, {"runs": [run]})
    section = section_of(record)
    aims = {line.what: line.aim for line in section.headlines if "own writes" in line.what}
    named = " with bootstrap tokens" if tokens else ""
    assert aims == {
        f"create 500 machines{named}: own writes a machine": None if tokens else 5.2,
        f"roll 500 machines{named}: own writes a machine": 14.8,
    }
    assert f"{'with' if tokens else 'without'} bootstrap tokens" in section.tables[0].title
    (writes,) = (picture for picture in section.pictures if picture.name == "fleet-writes")
    assert ("two writes a machine that the original's do not have" in writes.caption) is tokens


def test_every_bench_of_the_plan_has_a_section() -> None:
    assert SECTIONS.keys() == {bench.name for bench in BENCHES}


@pytest.mark.parametrize("results", [{"runs": []}, {"runs": [_RUN | {"phases": []}]}])
def test_a_fleet_that_came_to_nothing_says_so(results: dict[str, Any], tmp_path: Path) -> None:
    record = Record("fleet", ("python",), 1.0, _HERE, {}, results, "exit code 1: no server")
    assert not section_of(record).headlines
    assert "`fleet` failed: exit code 1: no server" in write([record], [], tmp_path).read_text()
