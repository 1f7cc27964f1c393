"""``mcm``, the command line: errors of use end in one line and exit code 2, failures in 1."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import platform
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import click

from mcm import __version__
from mcm.api.meta import JSONObject
from mcm.api.validation import DEFAULT_MAX_REPLICAS
from mcm.client.errors import ConfigurationError, KubeError
from mcm.clock import SystemClock
from mcm.configuration.command_line import ManagerCommand
from mcm.configuration.configuration import Configuration
from mcm.configuration.given import Source

_CONTEXT = {
    "help_option_names": ["-h", "--help"],
    "token_normalize_func": lambda token: token.replace("_", "-"),
    "max_content_width": 110,
}

_SANDBOX_EXTRA = frozenset({"cryptography", "rich", "trustme"})


@click.group(context_settings=_CONTEXT)
def main() -> None:
    """Keeps fleets of VMs in the state that MachineDeployment objects declare."""


@main.command(cls=ManagerCommand)
def run(*, configuration: Configuration) -> None:
    """Manage machines until told to stop.

    Connects to the clusters that the kubeconfigs name (or to the pod's own), wins the leases,
    and works.

    A flag may be set on the command line, by an environment variable (MCM_LEADER_ELECT for
    --leader-elect), or in the file of --config; what comes first in this list is obeyed.
    """
    from mcm.process import run_manager

    _log_to_stderr(configuration)
    _complete(lambda stop: run_manager(configuration.options, stop, places=configuration.places))


@main.command()
@click.option(
    "--kubeconfig",
    "kubeconfig_path",
    default="dev/sandbox-kubeconfig.yaml",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the kubeconfig.",
)
@click.option("--port", default=7443, show_default=True, type=click.IntRange(0, 65535),
              help="Port on 127.0.0.1; 0 takes a free one.")  # fmt: skip
@click.option("--samples/--no-samples", default=False, show_default=True,
              help="Also create the sample fleet, and pods that run on it.")  # fmt: skip
@click.option("--node-grace", default=20.0, show_default=True, type=click.FloatRange(min=1),
              help="Seconds without a heartbeat after which a Node is Unknown.")  # fmt: skip
@click.option("--heartbeat-interval", default=5.0, show_default=True,
              type=click.FloatRange(min=0.1),
              help="Seconds between a kubelet's heartbeats.")  # fmt: skip
@click.option("--authorization", default="AlwaysAllow", show_default=True,
              type=click.Choice(("AlwaysAllow", "RBAC")),
              help="Who may do what: everybody everything, or what roles and bindings "
                   "say; who holds the kubeconfig may everything.")  # fmt: skip
@click.option("--control-plane-node/--no-control-plane-node", default=False, show_default=True,
              help="Have a Node from the first, for pods that must run before there "
                   "are machines, as those of a chart.")  # fmt: skip
@click.option("--log-format", default="text", show_default=True,
              type=click.Choice(("text", "json")), help="Form of the log lines.")  # fmt: skip
@click.option("--v", "verbosity", default=0, show_default=True, help="4 and more is debug.")
def sandbox(
    *,
    kubeconfig_path: Path,
    port: int,
    samples: bool,
    node_grace: float,
    heartbeat_interval: float,
    authorization: Literal["AlwaysAllow", "RBAC"],
    control_plane_node: bool,
    log_format: str,
    verbosity: int,
) -> None:
    """Run an embedded Kubernetes control plane with a simulated cloud, without a manager.

    It listens on the loopback interface only, keeps everything in memory, and writes a kubeconfig.
    """
    from mcm import logs

    with _needs_the_sandbox_extra("sandbox"):
        from mcm.sandbox.cluster import SandboxSettings, run_sandbox

    if node_grace <= heartbeat_interval:
        raise click.UsageError("--node-grace must exceed --heartbeat-interval")
    logs.configure(log_format, verbosity=verbosity, clock=SystemClock())
    settings = SandboxSettings(
        kubeconfig=kubeconfig_path,
        port=port,
        samples=samples,
        node_grace=node_grace,
        heartbeat_interval=heartbeat_interval,
        authorization=authorization,
        control_plane_node=control_plane_node,
    )
    _complete(lambda stop: run_sandbox(settings, stop))


class _StartCommand(ManagerCommand):
    """Takes the clusters to work on from where :mod:`mcm.launcher.clusters` looks for them."""

    own_defaults: Mapping[str, object] = MappingProxyType({"address": "127.0.0.1"})

    def below(self, ctx: click.Context) -> list[Source]:
        from mcm.launcher.clusters import source_of

        return [source_of(os.environ, ctx.params.get("dev_dir", Path("dev")))]


@main.command(cls=_StartCommand)
@click.option("--dev-dir", default="dev", show_default=True,
              type=click.Path(file_okay=False, path_type=Path),
              help="Folder of the development kubeconfigs.")  # fmt: skip
@click.option("--progress/--no-progress", default=None,
              help="Show the fleet live; by default where the output is a terminal.")  # fmt: skip
@click.option("--sandbox-port", default=7443, show_default=True, type=click.IntRange(0, 65535),
              help="Port of the sandbox on 127.0.0.1; 0 takes a free one.")  # fmt: skip
@click.option("--install", is_flag=True,
              help="Create what the cluster lacks of definitions and the namespace; shown first, "
              "nothing that exists is changed.")  # fmt: skip
@click.option("-y", "--yes", is_flag=True, help="Do not ask whether to --install.")
def start(
    *,
    dev_dir: Path,
    progress: bool | None,
    sandbox_port: int,
    install: bool,
    yes: bool,
    configuration: Configuration,
) -> None:
    """Run the main job in one go, as `make start` does.

    Uses CONTROL_KUBECONFIG and TARGET_KUBECONFIG, else control-kubeconfig.yaml and
    target-kubeconfig.yaml in the development folder (the target's alone serves as both), else
    starts the sandbox, fills it with samples, and manages that. The manager's endpoints listen on
    the loopback interface only, unless --address says otherwise.
    """
    from mcm.launcher.terminal import foreground_under_make

    with _needs_the_sandbox_extra("start"):
        from mcm.launcher.launcher import launch

    shown = sys.stdout.isatty() if progress is None else progress
    _prepare(configuration, installing=install, unasked=yes)
    with foreground_under_make(os.environ):
        _complete(
            lambda stop: launch(
                configuration,
                dev_dir=dev_dir,
                sandbox_port=sandbox_port,
                progress=shown,
                stop=stop,
            )
        )


@main.command()
@click.option("--provider", default="", help="Also print the CRDs that this provider needs.")
def crds(provider: str) -> None:
    """Print the CustomResourceDefinitions, for `kubectl apply -f -`."""
    from mcm.api.crds import to_yaml

    definitions = _definitions_of_provider(provider) if provider else ()
    _print(to_yaml())
    if definitions:
        import yaml

        for definition in definitions:
            _print("---\n" + yaml.safe_dump(definition))


def _definitions_of_provider(name: str) -> Sequence[JSONObject]:
    from mcm.driver.definitions import definitions_of
    from mcm.driver.discovery import load_provider
    from mcm.vm.offline import NoCluster, context_of

    context = context_of(NoCluster(), namespace="default", clock=SystemClock())
    try:
        return definitions_of(load_provider(name)(context))
    except ConfigurationError as error:
        raise click.UsageError(f"--provider: {error}") from None


@main.command()
@click.option("-f", "--filename", "paths", multiple=True, required=True,
              type=click.Path(path_type=Path, allow_dash=True),
              help="File, folder of *.yaml, *.yml and *.json, or - for standard input; may be given"
              " several times.")  # fmt: skip
@click.option("-R", "--recursive", is_flag=True, help="Also look into folders of folders.")
@click.option("-n", "--namespace", default="default", show_default=True,
              help="Namespace of objects that name none.")  # fmt: skip
@click.option("--provider", default="",
              help="Also let this provider judge each providerSpec.")  # fmt: skip
@click.option("--max-replicas", default=DEFAULT_MAX_REPLICAS, show_default=True,
              type=click.IntRange(min=0), help="As for mcm run.")  # fmt: skip
@click.option("--strict", is_flag=True, help="Warnings fail, too.")
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text")
def validate(
    *,
    paths: tuple[Path, ...],
    recursive: bool,
    namespace: str,
    provider: str,
    max_replicas: int,
    strict: bool,
    output: str,
) -> None:
    """Check manifests of machines, classes, sets and deployments; no cluster is needed.

    Prints one line for each fault and exits with 1 if there is an error. What a cluster would act
    on all the same is a warning: typos in the names of fields, values that are ignored.
    """
    from mcm.validate import report
    from mcm.validate.provider_specs import check_of_provider, unchecked
    from mcm.validate.validation import validate_files

    try:
        check = check_of_provider(provider, namespace=namespace) if provider else unchecked
    except ConfigurationError as error:
        raise click.UsageError(f"--provider: {error}") from None
    outcome = validate_files(
        paths, namespace=namespace, max_replicas=max_replicas, recursive=recursive, check=check
    )
    if output == "json":
        _print(report.as_json(outcome.findings))
    else:
        _print(report.as_text(outcome.findings))
        click.echo(report.summary(outcome.documents, outcome.findings), err=True, nl=False)
    if not outcome.is_good(strict=strict):
        sys.exit(1)


@main.command("webhook-manifest")
@click.option("--service", default="mcm", show_default=True,
              help="Service in front of the replicas' --webhook-port.")  # fmt: skip
@click.option("--namespace", default="default", show_default=True, help="Namespace of the Service.")
@click.option("--port", default=443, show_default=True, type=click.IntRange(1, 65535),
              help="Port of the Service.")  # fmt: skip
@click.option("--url", default="", help="Ask at this https URL (with its path), not at a Service.")
@click.option("--ca", "ca_path", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Authority of the webhook's certificate, PEM; goes into caBundle.")  # fmt: skip
@click.option("--fail/--ignore", default=False, show_default=True,
              help="What happens to changes while no replica answers.")  # fmt: skip
def webhook_manifest(
    *, service: str, namespace: str, port: int, url: str, ca_path: Path | None, fail: bool
) -> None:
    """Print the ValidatingWebhookConfiguration, for `kubectl apply -f -`.

    It makes the API server ask the webhook of `mcm run --webhook-port`.
    """
    import yaml

    from mcm.webhook.configuration import webhook_configuration

    manifest = webhook_configuration(
        service=service,
        namespace=namespace,
        port=port,
        url=url,
        ca=ca_path.read_bytes() if ca_path is not None else b"",
        fail=fail,
    )
    _print(yaml.safe_dump(manifest, sort_keys=False))


class _Lazily(click.Group):
    """A group whose module is imported when it is used: a manager that starts needs none of it."""

    module = ""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return self._group().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return self._group().get_command(ctx, cmd_name)

    def _group(self) -> click.Group:
        group: click.Group = getattr(import_module(self.module), self.name or "")
        return group


class _LazyCommand(click.Command):
    """A command whose module is imported when it is used; its own name is that in the module."""

    module = ""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        command: click.Command = getattr(import_module(self.module), self.name or "")
        return command.make_context(info_name, args, parent, **extra)


class _OfNodes(_LazyCommand):
    module = "mcm.node_commands.command"


class _Vm(_Lazily):
    module = "mcm.vm.command"


class _Rollout(_Lazily):
    module = "mcm.rollout.command"


@main.command(cls=_Vm)
def vm() -> None:
    """Create, find, update and delete one VM of a machine class by hand.

    For trying out a class, its credentials or a provider. No manager runs, and no cluster is
    needed, unless the provider's cloud is one: `--kubeconfig` names it.
    """


@main.command(cls=_Rollout)
def rollout() -> None:
    """Plan, watch, undo, pause, resume and restart the rollout of a MachineDeployment.

    In kubectl's manner, which does the same for Deployments. DEPLOYMENT is a name, or
    mcd/NAME.
    """


class _Preflight(_LazyCommand):
    module = "mcm.preflight.command"


@main.command(cls=_Preflight)
def preflight() -> None:
    """Check a live cluster for a manager that is to run there, without writing anything."""


@main.command(cls=_OfNodes)
def drain() -> None:
    """Drain a node by hand, or tell (`mcm drain plan NODE`) what that would do."""


@main.command(cls=_OfNodes)
def uncordon() -> None:
    """Undo what `mcm drain` did to a node."""


@main.command()
@click.option("-o", "--output", type=click.Choice(("text", "json")), default="text")
def version(output: str) -> None:
    """Print the version."""
    if output == "json":
        facts = {"version": __version__, "python": platform.python_version()}
        _print(json.dumps(facts) + "\n")
    else:
        _print(f"mcm {__version__} (Python {platform.python_version()})\n")


def _print(text: str) -> None:
    """Write what was asked for to standard output; a full disk ends in one line."""
    try:
        click.echo(text, nl=False)
    except BrokenPipeError:
        raise  # whoever read has seen enough: click ends quietly
    except OSError as error:
        # What is left in the buffer would be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        why = error.strerror or str(error)
        raise click.ClickException(f"cannot write to standard output: {why}") from error


@contextmanager
def _needs_the_sandbox_extra(command: str) -> Iterator[None]:
    """Around imports: a library of the extra that is not installed becomes one line."""
    try:
        yield
    except ModuleNotFoundError as error:
        library = (error.name or "").partition(".")[0]
        if library not in _SANDBOX_EXTRA:
            raise
        click.echo(
            f"mcm: `mcm {command}` needs {library}, which is not installed: "
            "pip install 'mcm[sandbox]'",
            err=True,
        )
        sys.exit(1)


def _log_to_stderr(configuration: Configuration) -> None:
    from mcm import logs

    wanted = configuration.options.logging
    logs.configure(
        wanted.format, verbosity=wanted.verbosity, vmodule=wanted.vmodule, clock=SystemClock()
    )
    for remark in configuration.remarks:
        logging.getLogger(__name__).warning("%s", remark)


def _prepare(configuration: Configuration, *, installing: bool, unasked: bool) -> None:
    """See to it that the clusters given have what a manager needs."""
    from mcm.launcher.preparation import prepare

    def confirmed(what: str) -> bool:
        click.echo(what)
        if unasked:
            return True
        if not sys.stdin.isatty():
            click.echo("this is no terminal to ask at: add --yes")
            return False
        return click.confirm("create them?")

    try:
        prepare(configuration, installing=installing, confirmed=confirmed, tell=click.echo)
    except (ConfigurationError, KubeError) as error:
        click.echo(f"mcm: {error}", err=True)
        sys.exit(1)


def _complete(main_coroutine: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> None:
    """Run to the end; what a user can mend becomes one line, without a traceback."""
    from mcm.leaderelection import LeadershipLost
    from mcm.process import run_to_completion

    try:
        run_to_completion(main_coroutine)
    except (ConfigurationError, LeadershipLost, KubeError) as error:
        click.echo(f"mcm: {error}", err=True)
        sys.exit(1)
