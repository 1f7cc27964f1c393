"""The command line as its user meets it: flags, their spellings, and errors in one line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from mcm import __version__, cli
from mcm.client.errors import ConfigurationError
from mcm.configuration.configuration import Configuration
from mcm.options import Endpoints, Options


def invoke(*arguments: str, env: Mapping[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli.main, arguments, env=env)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """Options that `run` would have worked with; nothing is connected."""
    options: list[Options] = []

    async def record(given: Options, stop: object, **_: object) -> None:
        options.append(given)

    monkeypatch.setattr("mcm.process.run_manager", record)
    return options


def test_version_in_text_and_json() -> None:
    assert __version__ in invoke("version").output
    assert f'"version": "{__version__}"' in invoke("version", "-o", "json").output


def test_crds_are_yaml_that_kubectl_can_apply() -> None:
    kinds = [d["spec"]["names"]["kind"] for d in yaml.safe_load_all(invoke("crds").output)]
    assert sorted(kinds) == ["Machine", "MachineClass", "MachineDeployment", "MachineSet"]
    result = invoke("crds", "--provider", "simulated")
    names = [d["metadata"]["name"] for d in yaml.safe_load_all(result.output)]
    assert "virtualmachines.simulation.machine.sapcloud.io" in names


def test_flags_of_the_go_original_are_accepted_in_all_their_spellings(seen: list[Options]) -> None:
    result = invoke(
        "run",
        "--target-kubeconfig=t.yaml",
        "--machine_health_timeout=1h30m",
        "--leader-elect=False",
        "--safety-up",
        "5",
        "--node-conditions=A, B",
        "--machine-drain-priority-waves=-10, 0,1000",
        "--kube-api-content-type=application/json",
        "--profiling",
        "--v=2",
    )
    assert result.exit_code == 0, result.output
    options = seen[0]
    assert options.clusters.target_kubeconfig == "t.yaml"
    assert options.settings.health_timeout == timedelta(minutes=90)
    assert options.settings.node_conditions == ("A", "B")
    assert options.settings.drain_priority_waves == (-10, 0, 1000)
    assert options.settings.safety_up == 5
    assert not options.leader_election.enabled
    assert options.logging.verbosity == 2


def test_defaults_are_those_of_the_options(seen: list[Options]) -> None:
    assert invoke("run").exit_code == 0
    assert seen == [Options()]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--nonsense"], "--nonsense"),
        (["--port=0"], "--port: 0 is not a port"),
        (["--address=nowhere"], "--address: 'nowhere' is not an IP address"),
        (["--machine-drain-timeout=5"], "--machine-drain-timeout"),
        (["--machine-drain-timeout=-5s"], "--machine-drain-timeout"),
        (["--machine-drain-priority-waves=0,high"], "'high' is no whole number"),
        (["--machine-drain-priority-waves=5,5"], "--machine-drain-priority-waves: must ascend"),
        (["--leader-elect=maybe"], "neither true nor false"),
        (["--target-kubeconfig=none"], "--control-kubeconfig: required"),
        (["--leader-elect-renew-deadline=15s"], "--leader-elect-lease-duration"),
        (["--leader-elect-retry-period=9s"], "--leader-elect-renew-deadline"),
        (["--kube-api-qps=-1"], "--kube-api-qps"),
        (["--kube-api-qps=nan"], "--kube-api-qps"),
        (["--namespace=Foo_bar"], "--namespace"),
        (["--namespace=../x"], "--namespace"),
        (["--max-in-flight=0"], "--max-in-flight"),
        (["--simulate-cloud", "--target-kubeconfig=none", "--control-kubeconfig=x"], "--simulate"),
        (["--log-format=xml"], "--log-format"),
        (["--max-replicas=-1"], "--max-replicas: must not be negative"),
        (["--webhook-port=65536", "--webhook-cert-dir=x"], "--webhook-port: 65536 is not a port"),
        (["--webhook-port=9443"], "--webhook-cert-dir: required with --webhook-port"),
        (
            ["--webhook-port=10258", "--webhook-cert-dir=x"],
            "--webhook-port: must not be that of --port",
        ),
    ],
)
def test_a_bad_flag_is_named(arguments: list[str], complaint: str, seen: list[Options]) -> None:
    result = invoke("run", *arguments)
    assert result.exit_code == 2
    assert complaint in result.output
    assert not seen


def test_all_problems_are_named_at_once() -> None:
    result = invoke("run", "--port=0", "--address=nowhere")
    assert "--port" in result.output and "--address" in result.output


def test_what_a_user_can_mend_is_one_line_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def fail(options: Options, stop: object, **_: object) -> None:
        raise ConfigurationError("--target-kubeconfig: no such file")

    monkeypatch.setattr("mcm.process.run_manager", fail)
    result = invoke("run")
    assert result.exit_code == 1
    assert result.output == "mcm: --target-kubeconfig: no such file\n"


@pytest.mark.parametrize(
    ("arguments", "address"), [([], "127.0.0.1"), (["--address=0.0.0.0"], "0.0.0.0")]
)
def test_start_listens_on_the_loopback_interface_unless_told_otherwise(
    arguments: list[str], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Options] = []

    async def launch(configuration: Configuration, **_: object) -> None:
        started.append(configuration.options)

    monkeypatch.setattr("mcm.launcher.launcher.launch", launch)
    assert invoke("start", *arguments).exit_code == 0
    assert started == [Options(endpoints=Endpoints(address=address))]


def test_sandbox_wants_more_grace_than_heartbeats(tmp_path: Path) -> None:
    result = invoke("sandbox", "--node-grace=5", "--heartbeat-interval=5")
    assert result.exit_code == 2
    assert "--node-grace must exceed --heartbeat-interval" in result.output


@pytest.mark.parametrize("command", ["version", "crds"])
def test_a_full_disk_ends_in_one_line(command: str) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mcm", command], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 1
    assert done.stderr == "Error: cannot write to standard output: No space left on device\n"
