"""The commands that take the manager's flags, as they are typed: help, faults, sources, places."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from mcm import cli
from mcm.configuration.configuration import Configuration, options_of, shown
from mcm.configuration.table import GROUPS, WITHOUT_EFFECT, all_flags


def typed(*words: str, env: Mapping[str, str] | None = None) -> Result:
    return CliRunner().invoke(cli.main, words, env=env)


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Configuration]:
    """What `mcm start` would have launched; no cluster is asked."""
    configurations: list[Configuration] = []

    async def launch(configuration: Configuration, **_: object) -> None:
        configurations.append(configuration)

    monkeypatch.setattr("mcm.launcher.launcher.launch", launch)
    monkeypatch.setattr("mcm.launcher.preparation.prepare", lambda *_, **__: None)
    return configurations


@pytest.mark.parametrize("width", [80, 110])
@pytest.mark.parametrize("command", [cli.run, cli.start])
def test_the_help_has_every_flag_in_its_group_and_fits(command: click.Command, width: int) -> None:
    context = click.Context(command, info_name=f"mcm {command.name}", terminal_width=width)
    lines = command.get_help(context).splitlines()
    assert [line for line in lines if len(line) > width] == []
    titles = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert titles[-len(GROUPS) :] == [f"{group.title}:" for group in GROUPS]
    listed = lines[lines.index(f"{GROUPS[0].title}:") :]
    text = "\n".join(listed)
    for flag in all_flags():
        assert f"--{flag.name}" in text
        if flag not in WITHOUT_EFFECT.flags:
            assert sum(f"{line} ".startswith(f"  --{flag.name} ") for line in listed) == 1


def test_help_is_given_however_wrong_the_rest_is() -> None:
    result = typed("run", "--nonsense", "--port=x", "--help")
    assert result.exit_code == 0
    assert "Clusters and configuration:" in result.output


def test_all_faults_end_in_one_error_of_use() -> None:
    result = typed(
        "start", "--prot=1", "--sandbox-port=many", "--no-progres",
        env={"MCM_PORT": "x", "CONTROL_KUBECONFIG": "missing"},
    )  # fmt: skip
    assert result.exit_code == 2
    listed = [line.strip() for line in result.output.splitlines() if line.startswith("  ")]
    assert listed == [
        "--prot: there is no such flag; did you mean --port?",
        "--no-progres: there is no such flag; did you mean --no-progress?",
        "--sandbox-port: 'many' is not a valid integer range.",
        "MCM_PORT: 'x' is no whole number",
        "CONTROL_KUBECONFIG: there is no file missing",
    ]
    assert "5 things are wrong" in result.output


def test_what_is_ignored_is_told_in_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object, **__: object) -> None:
        pass

    monkeypatch.setattr("mcm.process.run_manager", nothing)
    before = logging.getLogger().handlers
    try:
        result = typed("run", "--logtostderr", env={"MCM_PROT": "1", "MCM_PORT": "tcp://1.2.3.4:5"})
    finally:
        logging.getLogger().handlers = before
    assert result.exit_code == 0
    told = [line.split("  ", 1)[1] for line in result.output.splitlines()]
    assert [line.partition(":")[0] for line in told] == [
        "MCM_PROT",
        "MCM_PORT",
        "without effect here",
    ]


def test_clusters_on_the_command_line_go_before_those_in_the_environment(
    launched: list[Configuration], tmp_path: Path
) -> None:
    file = tmp_path / "theirs"
    file.touch()
    environ = {"TARGET_KUBECONFIG": str(file)}
    result = typed("start", "--target-kubeconfig=mine", f"--dev-dir={tmp_path}", env=environ)
    assert result.exit_code == 0, result.output
    assert launched[0].options.clusters.target_kubeconfig == "mine"
    assert launched[0].places["target-kubeconfig"] == "--target-kubeconfig"
    assert typed("start", f"--dev-dir={tmp_path}", env=environ).exit_code == 0
    assert launched[1].options.clusters.target_kubeconfig == str(file)
    assert launched[1].places["target-kubeconfig"] == "environment"


def test_nothing_that_logs_in_is_shown() -> None:
    options = options_of({"otlp-endpoint": "http://me:secret@collector:4318/v1/traces"})
    assert shown(options, {})["otlp-endpoint"]["value"] == "http://…@collector:4318/v1/traces"
