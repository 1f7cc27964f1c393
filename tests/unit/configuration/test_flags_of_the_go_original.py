"""Command lines of the Go original's two programs start here, and mean what they meant there."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest
import yaml

from mcm.configuration.arguments import read_arguments
from mcm.configuration.configuration import FLAGS, Configuration, Misconfigured, configured, shown
from mcm.options import Options

TABLE: Final[list[Mapping[str, object]]] = yaml.safe_load(
    (Path(__file__).parent / "flags_of_the_go_original.yaml").read_text()
)
PROGRAMS: Final = ("sets", "machines")
ROWS: Final = [(row, program) for row in TABLE for program in PROGRAMS if program in row]


def started(*words: str) -> Configuration:
    arguments = read_arguments(words, FLAGS, {})
    assert not arguments.rest
    return configured([arguments.source])


def value_of(flag: str, configuration: Configuration) -> object:
    values = shown(configuration.options, configuration.places)
    return FLAGS[flag].kind.of_text(values[flag]["value"])


@pytest.mark.parametrize(("row", "program"), ROWS, ids=lambda part: str(part)[:60])
def test_a_flag_takes_its_default_of_there(row: Mapping[str, object], program: str) -> None:
    name, default = str(row["name"]), str(row[program])
    configuration = started(f"--{name}={default}")
    assert value_of(name, configuration) == FLAGS[name].kind.of_text(default)
    assert configuration.places == {name: f"--{name}"}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["name"]))
def test_nobody_who_sets_nothing_gets_anything_else_than_there(row: Mapping[str, object]) -> None:
    name = str(row["name"])
    expected = row["ours"] if "ours" in row else row.get("sets", row.get("machines"))
    assert FLAGS[name].default == FLAGS[name].kind.of_text(str(expected))
    differs = any(program in row and row[program] != expected for program in PROGRAMS)
    assert differs == ("why" in row)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["name"]))
def test_types_are_those_of_there(row: Mapping[str, object]) -> None:
    word = FLAGS[str(row["name"])].kind.word or "boolean"
    assert {"list": "text"}.get(word, word) == row["type"]


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("spelling", ["--{}={}", "--{} {}", "underscores"])
def test_a_whole_command_line_starts(program: str, spelling: str) -> None:
    words: list[str] = []
    for row in TABLE:
        if program not in row:
            continue
        name, value = str(row["name"]), str(row[program])
        if row["type"] == "boolean" or spelling == "underscores":
            words.append(f"--{name.replace('-', '_')}={value}")
        else:
            words += spelling.format(name, value).split(" ", 1)
    configuration = started(*words)
    told = {name: value["value"] for name, value in shown(configuration.options, {}).items()}
    usual = {name: value["value"] for name, value in shown(Options(), {}).items()}
    assert {name for name in told if told[name] != usual[name]} == {
        str(row["name"])
        for row in TABLE
        if program in row and row.get("ours", row[program]) != row[program]
    }


@pytest.mark.parametrize(
    ("words", "workers", "port"),
    [
        ([], 50, 10258),
        (["--concurrent-syncs=7"], 50, 10258),
        (["--controllers=machine-controllers"], 50, 10259),
        (["--controllers=machine,node", "--concurrent-syncs=7"], 7, 10259),
        (["--controllers=*,-set-controllers", "--concurrent-syncs=7", "--port=1"], 7, 1),
        (
            ["--controllers=machine", "--concurrent-syncs=7", "--machine-concurrent-syncs=9"],
            9,
            10259,
        ),
        (["--controllers=set-controllers", "--concurrent-syncs=7"], 50, 10258),
        (["--controllers=machine,machineset", "--concurrent-syncs=7"], 50, 10258),
    ],
)
def test_machine_controllers_alone_are_told_what_their_program_was(
    words: list[str], workers: int, port: int
) -> None:
    options = started(*words).options
    assert options.settings.machine_concurrent_syncs == workers
    assert options.endpoints.port == port


def test_a_selection_that_is_wrong_is_the_only_thing_that_is_said() -> None:
    with pytest.raises(Misconfigured) as caught:
        started("--controllers=none-such", "--concurrent-syncs=7")
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith("--controllers: 'none-such'")


def test_flags_without_effect_are_named_in_one_line() -> None:
    configuration = started("--logtostderr", "--cloud-provider=aws", "--v=2")
    assert len(configuration.remarks) == 1
    assert "--cloud-provider, --logtostderr" in configuration.remarks[0]
    assert started("--v=2").remarks == []


@pytest.mark.parametrize(
    ("words", "verbosity"),
    [(["-v=4"], 4), (["-v4"], 4), (["-v", "4"], 4), (["--v", "4"], 4), (["--v=2", "-v=5"], 5)],
)
def test_the_flag_of_one_letter_in_all_its_spellings(words: list[str], verbosity: int) -> None:
    assert started(*words).options.logging.verbosity == verbosity
