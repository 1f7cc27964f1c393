"""The command group ``mcm vm``: its options, what it prints, and how it ends."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, final

import click
import orjson

from mcm.client.errors import ConfigurationError, KubeError
from mcm.client.transport import Transport
from mcm.clock import Clock, SystemClock
from mcm.configuration.types import GoDuration
from mcm.controllers.provider import Provider, ProviderFailed
from mcm.driver import Driver, load_provider
from mcm.fence import Unfenced
from mcm.interrupts import EXIT_CODE, heed_interrupts
from mcm.vm.calls import Found, VmCalls
from mcm.vm.manifests import read_class, read_secrets
from mcm.vm.offline import NoCluster, context_of

P = ParamSpec("P")
_FILE = click.Path(dir_okay=False, path_type=Path)
_Verb = Callable[[VmCalls], Coroutine[Any, Any, None]]


@click.group()
def vm() -> None:
    """Hold the commands; `mcm.cli` shows them."""


@final
class Session:
    """What the common options say; runs one verb and ends the process as that ended."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self.json: bool = options["output"] == "json"

    def run(self, verb: _Verb) -> None:
        """Print what a user can mend in one line, and exit with 1 if the verb failed."""
        heed_interrupts()
        try:
            asyncio.run(self._call(verb))
        except ProviderFailed as failure:
            _fail(failure.text)
        except KubeError as error:
            _fail(str(error))
        except KeyboardInterrupt:
            _fail(
                "interrupted: what came of the call is unknown, look with `mcm vm status`",
                EXIT_CODE,
            )

    async def _call(self, verb: _Verb) -> None:
        options, clock = self._options, SystemClock()
        machine_class = read_class(options["machineclass"])
        kind = options["classkind"]
        if kind != "MachineClass":
            raise ConfigurationError(f"--classkind: only MachineClass is known here, not {kind!r}")
        secret = read_secrets(options["secret"])
        transport = _transport(options["kubeconfig"], clock)
        try:
            namespace = machine_class.metadata.namespace or "default"
            context = context_of(transport, namespace=namespace, clock=clock)
            driver: Driver = load_provider(options["provider"])(context)
            limit = options["timeout"].total_seconds()
            provider = Provider(driver, clock=clock, fence=Unfenced(), limit=limit)
            await verb(VmCalls(provider, machine_class, secret))
        finally:
            await transport.aclose()

    def show(self, found: Found, *, done: str, changed: tuple[str, ...] | None = None) -> None:
        """``changed``: fields of the provider spec, if they are known; never their values."""
        if self.json:
            facts: dict[str, object] = {
                "machineName": found.machine,
                "providerID": found.provider_id,
                "nodeName": found.node_name,
                "initialized": found.initialized,
            }
            if changed is not None:
                facts["changed"] = list(changed)
            click.echo(orjson.dumps(facts))
            return
        click.echo(f"{done}: {found.machine}")
        click.echo(f"  provider ID  {found.provider_id}")
        if found.node_name:
            click.echo(f"  node name    {found.node_name}")
        if not found.initialized:
            click.echo("  not initialized")
        if changed is not None:
            click.echo(f"  changed      {', '.join(changed) or 'nothing'}")

    def say(self, text: str, **facts: str) -> None:
        click.echo(orjson.dumps(facts) if self.json else text)


def _transport(kubeconfig: Path | None, clock: Clock) -> Transport:
    if kubeconfig is None:
        return NoCluster()
    from mcm.client import kubeconfig as kubeconfigs  # costs 60 MiB of imports
    from mcm.client.http import HTTPTransport

    try:
        return HTTPTransport(kubeconfigs.load(str(kubeconfig)), clock=clock)
    except ConfigurationError as error:
        raise ConfigurationError(f"--kubeconfig: {error}") from error


def _fail(text: str, code: int = 1) -> None:
    click.echo(f"mcm: {text}", err=True)
    sys.exit(code)


def _common(command: Callable[P, None]) -> Callable[P, None]:
    options: Sequence[Callable[[Any], Any]] = (
        click.option("--machineclass", "--machine-class", required=True, type=_FILE,
                     help="Manifest of the MachineClass."),
        click.option("--secret", multiple=True, required=True, type=_FILE,
                     help="Manifest of its Secret; may be repeated, later ones override."),
        click.option("--provider", default="simulated", show_default=True,
                     help="Machine provider (an entry point in mcm.providers)."),
        click.option("--classkind", default="MachineClass", hidden=True),
        click.option("--kubeconfig", type=_FILE,
                     help="A cluster, for providers whose cloud is one (simulated)."),
        click.option("--timeout", default=timedelta(minutes=15), type=GoDuration(),
                     show_default="15m", help="How long a call may take."),
        click.option("-o", "--output", default="text", show_default=True,
                     type=click.Choice(("text", "json")), help="Form of the output."),
    )  # fmt: skip

    @wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        return command(*args, **kwargs)

    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


_new_name = click.option("--machinename", "--machine-name", required=True,
                         help="Name of the machine, which identifies its VM.")  # fmt: skip
_name = click.option("--machinename", "--machine-name", default="",
                     help="Name of the machine; found by --machineid if not given.")  # fmt: skip
_id = click.option("--machineid", "--machine-id", default="",
                   help="Provider ID of the VM, where it is known.")  # fmt: skip


async def _named(calls: VmCalls, name: str, provider_id: str) -> str:
    """Return which machine is meant, by its name or its VM's ID."""
    return name or await calls.name_of(provider_id)


def _check_named(name: str, provider_id: str) -> None:
    if not name and not provider_id:
        raise click.UsageError("one of --machinename and --machineid is needed")


@vm.command()
@_new_name
@click.option("--initialize/--no-initialize", default=True, show_default=True,
              help="Also initialize it, as the machine controller does.")  # fmt: skip
@_common
def create(*, machinename: str, initialize: bool, **options: Any) -> None:
    """Create the VM of a machine, or adopt the one that exists.

    The place for a machine's name in `userData` is filled in, the one for a bootstrap token is not:
    there is no cluster to join.
    """
    session = Session(options)

    async def call(calls: VmCalls) -> None:
        found = await calls.create(machinename)
        if initialize:
            try:
                found = await calls.initialize(found)
            except ProviderFailed:
                session.show(found, done="created")
                raise
        session.show(found, done="created")

    session.run(call)


@vm.command()
@_name
@_id
@_common
def status(*, machinename: str, machineid: str, **options: Any) -> None:
    """Show the VM of a machine; exit with 1 if there is none."""
    _check_named(machinename, machineid)
    session = Session(options)

    async def call(calls: VmCalls) -> None:
        name = await _named(calls, machinename, machineid)
        session.show(await calls.status(name, machineid), done="found")

    session.run(call)


@vm.command()
@_name
@_id
@_common
def delete(*, machinename: str, machineid: str, **options: Any) -> None:
    """Delete the VM of a machine, and all that was made with it; one that is gone is fine, too."""
    _check_named(machinename, machineid)
    session = Session(options)

    async def call(calls: VmCalls) -> None:
        name = await _named(calls, machinename, machineid)
        await calls.delete(name, machineid)
        session.say(f"deleted: {name}", machineName=name, deleted="true")

    session.run(call)


@vm.command("list")
@_common
def list_(**options: Any) -> None:
    """List the VMs of the class: the collector of orphans sees these."""
    session = Session(options)

    async def call(calls: VmCalls) -> None:
        machines = await calls.list()
        if session.json:
            click.echo(orjson.dumps(dict(machines), option=orjson.OPT_SORT_KEYS))
            return
        width = max([len("PROVIDER ID"), *map(len, machines)])
        click.echo(f"{'PROVIDER ID':{width}}  MACHINE")
        for provider_id in sorted(machines):
            click.echo(f"{provider_id:{width}}  {machines[provider_id] or '<none>'}")

    session.run(call)


@vm.command()
@_name
@_id
@click.option("--last-applied", type=_FILE,
              help="Manifest of the class as it was applied before; what it has and the class has "
                   "no more is taken off the VM.")  # fmt: skip
@_common
def update(*, machinename: str, machineid: str, last_applied: Path | None, **options: Any) -> None:
    """Bring the VM of a machine to what the class says now, where it can be changed.

    With --last-applied it also says in which fields the class differs; without, only the provider
    knows.
    """
    _check_named(machinename, machineid)
    session = Session(options)

    async def call(calls: VmCalls) -> None:
        before = read_class(last_applied) if last_applied else None
        name = await _named(calls, machinename, machineid)
        found = await calls.update(name, machineid, before)
        session.show(found, done="updated", changed=calls.changed_since(before))

    session.run(call)
