"""``docs/gaps.md`` against the code: what nobody reads is said to be so, and nothing else is."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path

from mcm.api.crds.descriptions import DESCRIPTIONS
from mcm.configuration.table import all_flags
from mcm.controllers.settings import ControllerSettings, flag_of
from mcm.options import ConfigFile, Options, WithoutEffect

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/gaps.md").read_text()
WHERE_THEY_ARE_MADE = {"controllers/settings.py"}
HOLDERS = {"settings", "options", "election", "defaults"} | {
    f.name for f in dataclasses.fields(Options)
}
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


def read_by_properties() -> set[str]:
    """Names of the options that other attributes of their group are made of."""
    return {
        node.attr
        for path in (ROOT / "mcm/options").glob("*.py")
        for function in ast.walk(ast.parse(path.read_text()))
        if isinstance(function, ast.FunctionDef) and function.decorator_list
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
    }


def test_flags_that_nobody_reads_are_listed_and_no_others() -> None:
    read = read_anywhere()
    unread = {
        f"--{flag_of(f.name)}" for f in dataclasses.fields(ControllerSettings) if f.name not in read
    }
    assert unread == listed("Flags") | {"--min-resync-period"}


def test_every_option_of_the_process_has_a_reader() -> None:
    elsewhere = (ControllerSettings, ConfigFile, WithoutEffect)
    fields = {flag.field for flag in all_flags() if flag.owner not in elsewhere}
    fields -= {"resource_lock"} | read_by_properties()  # there is only one lock
    fields |= {f.name for f in dataclasses.fields(Options)} - {"config_file", "without_effect"}
    assert fields - read_anywhere() == set()


def test_help_says_of_these_flags_that_they_are_not_acted_on() -> None:
    said = {f"--{flag.name}" for flag in all_flags() if "Not acted on yet." in flag.help}
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
