"""``docs/gaps.md`` against the code: what nobody reads is said to be so, and nothing else is."""

from __future__ import annotations

import ast
import dataclasses
import logging
import re
from datetime import timedelta
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from mcm.api.crds.descriptions import DESCRIPTIONS
from mcm.cli import main, run
from mcm.controllers import settings
from mcm.controllers.settings import NOT_ACTED_ON_YET, ControllerSettings, flag_of
from mcm.options import LeaderElection, Options

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/gaps.md").read_text()
WHERE_THEY_ARE_MADE = {"flags.py", "options.py", "controllers/settings.py"}
HOLDERS = {"settings", "options", "election", "defaults"}
"""What the objects that hold settings are called, wherever they are read."""


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def listed(title: str) -> set[str]:
    """The first column of the section's table."""
    return set(re.findall(r"^\| `([^`]+)` \|", section(title), re.MULTILINE))


def read_anywhere() -> set[str]:
    """Names of all attributes that are read off something which holds settings."""
    package = ROOT / "mcm"
    names: set[str] = set()
    for path in package.rglob("*.py"):
        if path.relative_to(package).as_posix() in WHERE_THEY_ARE_MADE:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                holder = ast.unparse(node.value).rsplit(".", 1)[-1].strip("_")
                if holder in HOLDERS:
                    names.add(node.attr)
    return names


def test_flags_that_nobody_reads_are_listed_and_no_others() -> None:
    read = read_anywhere()
    unread = {
        f"--{flag_of(f.name)}" for f in dataclasses.fields(ControllerSettings) if f.name not in read
    }
    assert unread == listed("Flags") | {"--min-resync-period"}


def test_every_option_of_the_process_has_a_reader() -> None:
    fields = {f.name for owner in (Options, LeaderElection) for f in dataclasses.fields(owner)}
    assert fields - read_anywhere() == set()


def test_help_says_of_these_flags_that_they_are_not_acted_on() -> None:
    said = {
        option.opts[0]
        for option in run.params
        if isinstance(option, click.Option) and "Not acted on yet." in (option.help or "")
    }
    assert said == listed("Flags") == {f"--{name}" for name in NOT_ACTED_ON_YET}
    assert "`--min-resync-period`" in section("Flags")


def test_descriptions_say_of_these_fields_what_is_missing() -> None:
    said = {
        f"{kind.__name__}.{field}"
        for kind, texts in DESCRIPTIONS.items()
        for field, text in texts.items()
        if re.search(r"\byet\b", text)
    }
    assert said == listed("Fields")


@pytest.fixture(autouse=True)
def _logging_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands run here set up logging to a stream that ends with them."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)


def warnings_of_run(*arguments: str) -> list[str]:
    """What `mcm run` says of such flags before it fails for want of the provider."""
    result = CliRunner().invoke(main, ["run", "--provider=nobodys", *arguments])
    assert result.exit_code == 1, result.output
    assert "nobodys" in result.output
    return [line for line in result.output.splitlines() if "not acted on yet" in line]


OTHER_VALUES = {bool: "false", int: "7", float: "0.7", str: "x", tuple: "X", timedelta: "7s"}


@pytest.mark.parametrize("setting", dataclasses.fields(ControllerSettings), ids=lambda f: f.name)
def test_a_flag_that_is_not_acted_on_is_warned_of_and_no_other(
    setting: dataclasses.Field[object],
) -> None:
    flag = flag_of(setting.name)
    value = OTHER_VALUES[type(setting.default)]
    if setting.name == "apiserver_statuscheck_period":
        value = "7m"
    if setting.name == "drain_priority_waves":
        value = "7"
    said = warnings_of_run(f"--{flag}={value}")
    assert len(said) == (flag in NOT_ACTED_ON_YET)
    assert all(
        "WARNING" in line and f"--{flag} is not acted on yet; see docs/gaps.md" in line
        for line in said
    )


@pytest.mark.parametrize(
    "arguments", [(), ("--machine-pv-detach-timeout=2m", "--safety-up=2", "--safety-down", "1")]
)
def test_defaults_are_warned_of_by_nobody(arguments: tuple[str, ...]) -> None:
    assert warnings_of_run(*arguments) == []


def test_each_flag_has_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = frozenset({"machine-pv-reattach-timeout", "machine-pv-detach-timeout"})
    monkeypatch.setattr(settings, "NOT_ACTED_ON_YET", missing)
    said = warnings_of_run(
        "--machine-pv-detach-timeout=3s",
        "--machine_pv_reattach_timeout=0s",
        "--machine-drain-timeout=1h",
    )
    named = sorted(line.split("--")[1].split()[0] for line in said)
    assert named == sorted(missing)
