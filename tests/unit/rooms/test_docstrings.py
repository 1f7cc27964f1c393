"""Each module's first line says in one sentence what the module decides, does or holds."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MODULES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("mcm/**/*.py"))
LONGEST = 100
FEWEST_WORDS = 4
SENTENCE_INSIDE = re.compile(r"[.?!] +(?=[A-Z`\"])")


def first_line(module: str) -> str:
    return (ast.get_docstring(ast.parse((ROOT / module).read_text())) or "").split("\n")[0]


def complaints(line: str, module: str) -> list[str]:
    """What is wrong with ``line`` as the first line of ``module``."""
    path = Path(module)
    name = (path.parent if path.stem == "__init__" else path).stem
    words = re.findall(r"[a-z]+", line.lower())
    found = []
    if len(line) > LONGEST:
        found.append("too long")
    if not line.endswith("."):
        found.append("does not end in a full stop")
    if SENTENCE_INSIDE.search(line):
        found.append("more than one sentence")
    if len(words) < FEWEST_WORDS or set(words) <= {*name.split("_"), "a", "the", "of", "module"}:
        found.append("says no more than the name")
    return found


@pytest.mark.parametrize("module", MODULES)
def test_the_first_line_is_one_sentence_that_says_something(module: str) -> None:
    assert complaints(first_line(module), module) == []


def test_no_two_modules_say_the_same_of_themselves() -> None:
    said = Counter(first_line(module).lower() for module in MODULES)
    assert [line for line, times in said.items() if times > 1] == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("", "does not end in a full stop"),
        ("Which keys wait", "does not end in a full stop"),
        ("Which keys wait, and for how long. Pure.", "more than one sentence"),
        ("Who has the name? Asked before a creation.", "more than one sentence"),
        (f"Which keys {'still ' * 20} wait.", "too long"),
        ("The delayed keys.", "says no more than the name"),
        ("The module of the delayed keys.", "says no more than the name"),
    ],
)
def test_what_the_rule_refuses(line: str, complaint: str) -> None:
    assert complaint in complaints(line, "mcm/workqueue/delayed_keys.py")


@pytest.mark.parametrize(
    "line",
    [
        "Which keys wait, and for how long.",
        "Merge patches (RFC 7396), durations (``1.5s``), and v1.2 of something.",
        "Keys that wait: see :class:`.state.QueueState`.",
    ],
)
def test_what_the_rule_admits(line: str) -> None:
    assert complaints(line, "mcm/workqueue/delayed_keys.py") == []
