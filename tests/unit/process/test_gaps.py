"""``docs/gaps.md`` against the code: what nobody reads is said to be so, and nothing else is."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

import click

from mcm.api.crds.descriptions import DESCRIPTIONS
from mcm.cli import run
from mcm.controllers.settings import ControllerSettings, flag_of
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
    assert said == listed("Flags")
    assert "`--min-resync-period`" in section("Flags")


def test_descriptions_say_of_these_fields_what_is_missing() -> None:
    said = {
        f"{kind.__name__}.{field}"
        for kind, texts in DESCRIPTIONS.items()
        for field, text in texts.items()
        if re.search(r"\byet\b", text)
    }
    assert said == listed("Fields")
