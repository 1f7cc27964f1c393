"""What the architecture's page answers under "Where is …?" names files and functions that exist."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/architecture.md").read_text()
SECTION = PAGE.split("\n## Where is …?\n", 1)[1].split("\n## ", 1)[0]
ANSWERS = {
    question: re.findall(r"`(\S+\.py)`: `(\S+)`", answer)
    for question, answer in re.findall(r"^\| (\S.*\?) \| (.+) \|$", SECTION, re.MULTILINE)
}


def files_with(sign: str) -> set[str]:
    """Modules whose text has ``sign``, a pattern; sandbox and drivers play the outside world."""
    package = ROOT / "mcm"
    files = {path.relative_to(package).as_posix(): path for path in package.rglob("*.py")}
    return {
        name
        for name, path in files.items()
        if not name.startswith(("sandbox/", "providers/", "driver/"))
        and re.search(sign, path.read_text())
    }


@pytest.mark.parametrize(
    "words",
    ["step size of a rollout", "VM deleted", "Node's taints written", "lease renewed",
     "drain woken", "provider call fenced", "secret's value masked", "gets nowhere held back"],
)  # fmt: skip
def test_what_is_asked_most_is_answered(words: str) -> None:
    asked = words.split()
    fitting = [q for q in ANSWERS if all(word in q.rstrip("?").split() for word in asked)]
    assert len(fitting) == 1
    assert ANSWERS[fitting[0]]


@pytest.mark.parametrize(
    ("file", "function"), [named for answer in ANSWERS.values() for named in answer]
)
def test_what_is_named_is_defined_there(file: str, function: str) -> None:
    module = importlib.import_module("mcm." + file.removesuffix(".py").replace("/", "."))
    found: object = reduce(getattr, function.split("."), module)
    assert getattr(found, "__module__", None) == module.__name__


def test_every_file_in_an_answer_is_read() -> None:
    named = [file for answer in ANSWERS.values() for file, _ in answer]
    assert sorted(named) == sorted(re.findall(r"`(\S+\.py)`", SECTION))
    rows = [line for line in SECTION.splitlines() if line.startswith("| ")]
    assert len(ANSWERS) == len(rows) - 1


BY_HAND = ("conformance/", "vm/")
"""What calls a driver without a controller: the kit for its author, and ``mcm vm``."""


@pytest.mark.parametrize(
    ("question", "sign"),
    [
        ("is a VM created?", r"\bCreateMachineRequest\("),
        ("is a VM deleted?", r"\bDeleteMachineRequest\("),
        ("are a Node's taints written?", r'\{"taints": \['),
        ("is a lease renewed?", r"\.renewal\("),
        ("is a key that gets nowhere held back?", r"_writes\.held\("),
    ],
)
def test_nobody_else_does_it(question: str, sign: str) -> None:
    doing = {file for file in files_with(sign) if not file.startswith(BY_HAND)}
    assert doing
    assert doing <= {file for file, _ in ANSWERS[question]}


def test_whoever_writes_or_deletes_a_node_asks_whose_it_is() -> None:
    writing = files_with(r"(\.patch|\.delete|patch_each)\([^)]{0,40}\bNODES\b|used=NODES")
    assert "controllers/machine/node/template_sync.py" in writing
    by_hand = {file for file in writing if file.startswith("node_commands/")}
    asking = files_with(r"\bowners\.(find|of|own_node)\(|\b_owners\.own_node\b")
    assert writing - by_hand <= asking
    by_hand.discard("node_commands/marked_node.py")  # writes only where its own mark is
    assert by_hand <= files_with(r"\bwhy_not_(drain|uncordon)\(")
