"""``docs/faq.md`` as a reader finds it: groups, questions, and the commands of each answer."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
PAGE: Final = ROOT / "docs" / "faq.md"
_BLOCK: Final = re.compile(
    r"^ *(?:<!-- held by (?P<test>\S+) -->\n *)?```sh\n(?P<text>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)
_LINK: Final = re.compile(r"\]\((?P<target>[^)]+)\)")


@dataclass(frozen=True)
class Block:
    """Commands. ``test`` is the one that holds them where they are not run as they stand."""

    text: str
    test: str


def groups() -> Mapping[str, tuple[str, ...]]:
    """Return the questions of each group, in the page's order."""
    parts = PAGE.read_text().split("\n## ")[1:]
    return {
        part.partition("\n")[0]: tuple(re.findall(r"^### (.*)$", part, re.MULTILINE))
        for part in parts
    }


def blocks(question: str) -> list[Block]:
    """Return the commands of one answer."""
    answer = PAGE.read_text().split(f"\n### {question}\n", 1)[1]
    answer = re.split(r"^##", answer, maxsplit=1, flags=re.MULTILINE)[0]
    return [
        Block(textwrap.dedent(found["text"]), found["test"] or "")
        for found in _BLOCK.finditer(answer)
    ]


def all_blocks() -> Iterator[Block]:
    for questions in groups().values():
        for question in questions:
            yield from blocks(question)


def links() -> Iterator[str]:
    for found in _LINK.finditer(PAGE.read_text()):
        yield found["target"]


def anchors(path: Path) -> set[str]:
    """Return what a link may name in a page, by the rules of GitHub."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower().replace("`", "")).replace(" ", "-")
        for heading in headings
    }
