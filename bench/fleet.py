"""A whole fleet of machines whose VMs take no time: how fast and at what cost a manager handles it.

N machines are created, rolled, scaled, killed in part and deleted at an API server, by ``mcm run``
or by another manager. Requests are counted at the server, and compared with what it can answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import uvloop
from rich.console import Console
from rich.table import Table

from bench.clusters import server
from bench.clusters.generator import DEFAULT_CONNECTIONS
from bench.clusters.raw_rates import RawRates
from bench.clusters.server import ServerUnavailable
from bench.instant.foreign_class import BadClass, read_class
from bench.managers.command import BadCommand, Command, ours, parsed
from bench.phases.results import Phase, Run
from bench.phases.run import PHASES, Load, run
from mcm.api.meta import JSONObject
from mcm.client.errors import KubeError

_SHORT = ("--machines=300", "--raw-objects=500")


async def measure(
    given: argparse.Namespace, commands: Sequence[Command], machine_class: JSONObject
) -> list[Run]:
    """Run each manager with each size, in turns; a server of the bench's own is new each time."""
    kind = server.chosen(given.server)
    runs = []
    with tempfile.TemporaryDirectory(prefix="mcm-bench-") as folder:
        for turn in range(given.repeat):
            for machines in given.machines:
                for command in commands:
                    place = Path(folder) / f"{turn}-{machines}-{command.name}"
                    place.mkdir()
                    async with server.running(kind, place) as cluster:
                        _say(f"{command.name}: {machines} machines at {cluster.version}")
                        load = _load(given, machines, machine_class)
                        runs.append(await run(cluster, command, load, place))
    return runs


def _load(given: argparse.Namespace, machines: int, machine_class: JSONObject) -> Load:
    return Load(
        machines=machines,
        scaled=max(1, machines // 5),
        killed=max(1, machines // 10),
        phases=given.phases,
        raw=given.raw_objects,
        connections=given.raw_connections,
        patience=given.patience,
        machine_class=machine_class,
        bootstrap_tokens=given.bootstrap_tokens,
    )


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def show(runs: Sequence[Run], console: Console, *, bootstrap_tokens: bool) -> None:
    """Print the results for people."""
    for each in runs:
        console.print(_table(each, "with" if bootstrap_tokens else "without"))
        if each.raw_rates is not None:
            rates = (f"{name} {rate:,.0f}" for name, rate in each.raw_rates.rates.items())
            console.print(f"raw rates, requests a second: {', '.join(rates)}")
            share = each.raw_rates.generator_cpu_seconds / each.raw_rates.seconds
            console.print(f"(the generator itself took {share:.0%} of a core)")
            if each.raw_rates.server_cpu_seconds:
                console.print(_server_cpu(each, each.raw_rates))
        for remark in each.remarks:
            console.print(remark)


def _table(each: Run, tokens: str) -> Table:
    table = Table(
        "phase",
        title=f"{each.manager}, {each.machines:,} machines {tokens} bootstrap tokens, "
        f"{each.server} {each.server_version}; "
        f"start {each.start_seconds:.1f} s, peak {each.peak_resident_bytes / 2**20:.0f} MiB",
    )
    for header in ("machines", "seconds", "own writes", "events", "all", "refused", "a second"):
        table.add_column(header, justify="right")
    for header in ("efficiency", "CPU s", "ms CPU", "idle", "MiB", "p50 ms", "p99 ms", "queued"):
        table.add_column(header, justify="right")
    for phase in each.phases:
        delay = phase.event_to_write
        table.add_row(
            phase.name,
            f"{phase.machines:,}",
            f"{phase.seconds:.2f}",
            f"{phase.own_writes_a_machine:.2f}",
            f"{phase.events_a_machine:.2f}",
            f"{phase.all_writes_a_machine:.2f}",
            f"{phase.refused}",
            f"{phase.writes_a_second:,.0f}",
            "–" if phase.efficiency is None else f"{phase.efficiency:.2f}",
            f"{phase.cpu_seconds:.2f}",
            f"{phase.cpu_milliseconds_a_machine:.1f}",
            _idle(each, phase),
            f"{phase.peak_resident_bytes / 2**20:.0f}",
            f"{1000 * delay.p50:.0f}" if delay else "–",
            f"{1000 * delay.p99:.0f}" if delay else "–",
            f"{max((depth for _, depth in phase.queue_depth), default=0)}",
        )
    return table


def _idle(of: Run, phase: Phase) -> str:
    """Return the share of the machine's CPU that manager, server and bench left unused."""
    if of.server == server.GIVEN:
        return "–"
    available = phase.seconds * (os.cpu_count() or 1)
    return f"{1 - sum(phase.cpu_seconds_until_done.values()) / available:.0%}"


def _server_cpu(of: Run, raw: RawRates) -> str:
    """Say what a request cost the server, when nobody watched and in each phase."""
    alone = 1000 * raw.server_cpu_seconds / raw.requests
    told = (
        f"{phase.name} {1000 * phase.cpu_seconds_until_done['server'] / phase.requests:.1f}"
        for phase in of.phases
    )
    return f"CPU of the server, ms a request: raw {alone:.1f}, {', '.join(told)}"


def as_json(given: argparse.Namespace, commands: Iterable[Command], runs: Iterable[Run]) -> str:
    parameters = {
        "server": given.server,
        "machines": given.machines,
        "managers": [command.name for command in commands],
        "bootstrap_tokens": given.bootstrap_tokens,
        "phases": list(given.phases),
        "raw_objects": given.raw_objects,
        "raw_connections": given.raw_connections,
        "repeat": given.repeat,
        "cpus": os.cpu_count(),
    }
    results = {"runs": [asdict(each) for each in runs]}
    return json.dumps({"bench": "fleet", "parameters": parameters, "results": results})


# ---- flags --------------------------------------------------------------------------------------


def arguments(given: Sequence[str]) -> argparse.Namespace:
    """Read the command line. Exits with a line that names the flag that is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.fleet", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--machines", type=_sizes, default=[500], help="fleet sizes, by commas (500)"
    )
    parser.add_argument(
        "--server",
        default=server.AUTO,
        help="real (kube-apiserver and etcd, started here), sandbox, or the path of a kubeconfig;"
        " auto: real if its binaries are here",
    )
    parser.add_argument(
        "--manager",
        action="append",
        dest="managers",
        help="mcm, 'mcm --FLAG=…', or 'NAME=COMMAND' with {kubeconfig}, {namespace} and {port};"
        " several are measured side by side",
    )
    parser.add_argument(
        "--machine-class",
        metavar="FILE",
        help="a MachineClass (YAML) whose provider, providerSpec and nodeTemplate the fleet's have,"
        " for a manager with a driver of its own",
    )
    parser.add_argument(
        "--bootstrap-tokens",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="have the user data ask for a token, whose Secret is made and deleted for each new"
        " machine: two more writes (default: no tokens, as docs/performance.md compares)",
    )
    parser.add_argument("--phases", type=_phases, default=PHASES, help=f"of {', '.join(PHASES)}")
    parser.add_argument("--repeat", type=_positive, default=1, help="runs of each")
    parser.add_argument(
        "--raw-objects", type=_count, default=1000, help="to measure raw rates with; 0: do not"
    )
    parser.add_argument("--raw-connections", type=_positive, default=DEFAULT_CONNECTIONS)
    parser.add_argument(
        "--patience", type=_positive, default=900, help="seconds that a phase may take"
    )
    parser.add_argument("--short", action="store_true", help=f"same as {' '.join(_SHORT)}")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    found = parser.parse_args(given)
    return parser.parse_args([*_SHORT, *given]) if found.short else found


def _sizes(text: str) -> list[int]:
    return [_positive(each) for each in text.split(",")]


def _positive(text: str) -> int:
    number = _count(text)
    if not number:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _count(text: str) -> int:
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def _phases(text: str) -> tuple[str, ...]:
    chosen = [each.strip() for each in text.split(",")]
    unknown = [each for each in chosen if each not in PHASES]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(PHASES)}")
    return tuple(each for each in PHASES if each in {"create", *chosen, "delete"})


# ---- the program --------------------------------------------------------------------------------


def main() -> None:
    given = arguments(sys.argv[1:])
    logging.basicConfig(level=logging.ERROR)
    try:
        commands = [parsed(text) for text in given.managers or ()] or [ours()]
        machine_class = read_class(given.machine_class) if given.machine_class else {}
        runs = uvloop.run(_until_told(given, commands, machine_class))
    except (BadCommand, BadClass, ServerUnavailable, KubeError) as error:
        sys.exit(f"bench.fleet: {error}")
    except (KeyboardInterrupt, asyncio.CancelledError):
        sys.exit(130)
    if given.json:
        print(as_json(given, commands, runs))
    else:
        show(runs, Console(width=170), bootstrap_tokens=given.bootstrap_tokens)
    if failed := [each for each in runs if each.failure]:
        of = failed[0]
        sys.exit(f"bench.fleet: {of.manager}, {of.machines} machines: {of.failure}")


async def _until_told(
    given: argparse.Namespace, commands: Sequence[Command], machine_class: JSONObject
) -> list[Run]:
    """Measure; SIGTERM and SIGHUP end it in order, as Ctrl-C does."""
    work = asyncio.current_task()
    assert work is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    return await measure(given, commands, machine_class)


if __name__ == "__main__":
    main()
