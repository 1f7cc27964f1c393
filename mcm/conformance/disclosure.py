"""Looks for the values of a secret in what a driver said: errors, states, log lines."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import final
from urllib.parse import quote

SHORTEST = 6
"""Characters of the shortest value that is looked for: ``eu-1`` may well stand in an error."""


def disclosed(texts: Iterable[str], secret: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield the key and the text, for each of the secret's values that a text gives away.

    Values are looked for plain, as base64 and URL-quoted, and line by line.
    """
    forms = {key: tuple(_forms(value)) for key, value in secret.items()}
    for text in texts:
        for key, values in forms.items():
            if any(value in text for value in values):
                yield key, text


def _forms(value: bytes) -> Iterator[str]:
    text = value.decode(errors="replace").strip()
    for part in {text, *(line.strip() for line in text.splitlines())}:
        if len(part) >= SHORTEST:
            yield part
            yield quote(part, safe="")
            yield base64.b64encode(part.encode()).decode().rstrip("=")


@final
class Overhearing(logging.Handler):
    """Collects every log line while it is entered, also those below the level that is shown."""

    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))

    def __enter__(self) -> Overhearing:
        root = logging.getLogger()
        self._level = root.level
        root.setLevel(logging.DEBUG)
        root.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        root = logging.getLogger()
        root.removeHandler(self)
        root.setLevel(self._level)
