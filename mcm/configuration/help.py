"""How the flags are shown: by the groups in which an operator looks for them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

import click

from mcm.configuration.flag import Flag, Group
from mcm.configuration.table import GROUPS, WITHOUT_EFFECT


def write_groups(formatter: click.HelpFormatter, defaults: Mapping[str, object]) -> None:
    """Write a section for each group; ``defaults`` are those that differ from the flags' own."""
    for group in GROUPS:
        with formatter.section(group.title):
            if group is WITHOUT_EFFECT:
                _write(formatter, ", ".join(f"--{flag.name}" for flag in group.flags))
                continue
            for flag in group.flags:
                _write_flag(formatter, flag, default_of(flag, defaults))


def default_of(flag: Flag, defaults: Mapping[str, object]) -> str:
    """Return the default as an operator would write it; empty if there is none."""
    return flag.kind.as_text(defaults.get(flag.name, flag.default))


def as_markdown(group: Group) -> str:
    """Return the group as a section of a page."""
    rows = [
        f"| `--{flag.name}` | {_code(default_of(flag, {}))} | {_escaped(flag.help)} |"
        for flag in group.flags
    ]
    head = f"## {group.title}\n\n| flag | default | meaning |\n|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _write_flag(formatter: click.HelpFormatter, flag: Flag, default: str) -> None:
    shown = f"[{default}]" if default else ""
    left = f"{'':>{formatter.current_indent}}{_usage(flag)}"
    fits = len(left) + 2 + len(shown) <= formatter.width
    formatter.write(f"{left}  {shown}".rstrip() + "\n" if fits else f"{left}\n")
    formatter.indent()
    formatter.indent()
    if not fits:
        _write(formatter, shown)
    _write(formatter, flag.help)
    formatter.dedent()
    formatter.dedent()


def _write(formatter: click.HelpFormatter, text: str) -> None:
    """Write a paragraph in which no flag's name is broken at one of its hyphens."""
    indentation = " " * formatter.current_indent
    written = textwrap.fill(
        text,
        formatter.width,
        initial_indent=indentation,
        subsequent_indent=indentation,
        break_on_hyphens=False,
        break_long_words=False,
    )
    formatter.write(f"{written}\n")


def _usage(flag: Flag) -> str:
    return f"--{flag.name} {flag.kind.word}".rstrip()


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _escaped(text: str) -> str:
    return text.replace("|", "\\|")
