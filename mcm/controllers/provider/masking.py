"""Takes the values of a class's secrets out of a text that is going to be shown."""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, final
from urllib.parse import quote, quote_plus

import orjson

MASK: Final = "***"

SHORTEST: Final = 5
"""Characters of the shortest value that is masked: to mask ``a`` would only spoil the text."""

SHORTEST_PART: Final = 8
"""Characters of the shortest line (or string in a JSON document) that is masked by itself."""

_QUOTED = 16
"""So many characters from the start of a value are taken for the value, cut short by somebody."""

_FEW = 100
"""Beginnings of forms up to which it is faster to search a text for each."""

_TOKEN = re.compile(r"\b[a-z0-9]{6}\.([a-z0-9]{16})\b")
_ESCAPED = frozenset("\"'\\")
"""Of the printable characters those that some spelling escapes."""
_URL = re.compile(r"https?://")


@final
class Mask:
    """The values of one secret, in every form in which a provider is likely to repeat them.

    Masked are values of at least :data:`SHORTEST` characters; the lines of those that have several,
    the strings in those that are JSON, and bootstrap tokens in user data, from
    :data:`SHORTEST_PART` on; all of it plain, as base64 (also inside a longer text that was
    encoded), URL-quoted and escaped; and long ones also if only their beginning is quoted.
    """

    def __init__(self, values: Iterable[bytes]) -> None:
        # By what they begin with, in order: a large document has 100,000 of them.
        self._forms: dict[str, list[str]] = {}
        for form in sorted(_forms(values)):
            self._forms.setdefault(form[:_QUOTED], []).append(form)
        self._lengths = sorted({len(head) for head in self._forms})

    def __call__(self, text: str) -> str:
        """Return ``text`` without the values. Never raises; a second time changes nothing."""
        while spans := _merged(self._spans(text)):
            # What is left and right of a mask may make up a value again. Each round shortens.
            text = _without(text, spans)
        return text

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        ends: dict[str, int] = {}
        for start, head in self._hits(text):
            if start + len(head) <= ends.get(head, 0):
                continue
            forms = self._forms[head]
            end = start + max(_in_common(text, start, f) for f in _nearest(text, start, forms))
            yield start, end
            if len(forms) == 1:  # of several, another one may go on where this one ends
                ends[head] = end

    def _hits(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield where in ``text`` a form may stand, and its head; for each head from left to right.

        Few heads are searched for; of many, one is looked up at each place.
        """
        if len(self._forms) <= _FEW:
            for head in self._forms:
                start = text.find(head)
                while start >= 0:
                    yield start, head
                    start = text.find(head, start + 1)
            return
        for length in self._lengths:
            for start in range(len(text) - length + 1):
                if (head := text[start : start + length]) in self._forms:
                    yield start, head


@final
class Masks:
    """The masks used last: most calls that fail do so with one of few secrets.

    To look for a machine's VM before it is made fails each time.
    """

    def __init__(self, *, most: int = 32) -> None:
        self._most = most
        self._masks: OrderedDict[frozenset[bytes], Mask] = OrderedDict()

    def of(self, secret: Mapping[str, bytes]) -> Mask:
        """Return the mask of ``secret``'s values."""
        values = frozenset(secret.values())
        mask = self._masks.pop(values, None) or Mask(values)
        self._masks[values] = mask
        if len(self._masks) > self._most:
            self._masks.popitem(last=False)
        return mask


def _forms(values: Iterable[bytes]) -> frozenset[str]:
    forms: set[str] = set()
    for value in values:
        stripped = value.strip()
        text = stripped.decode(errors="replace")
        if len(text) < SHORTEST:
            continue
        forms.update(_spellings(stripped))
        forms.update(_base64(value))
        for part in _parts(text):
            forms.update(_escaped(part))
        for leaf in _leaves(text):
            forms.update(_spellings(leaf.encode()))
    return frozenset(form for form in forms if len(form) >= SHORTEST)


def _spellings(value: bytes) -> Iterator[str]:
    yield from _escaped(value.decode(errors="replace"))
    yield repr(value)[2:-1]
    yield from (quote(value), quote(value, safe=""), quote_plus(value))
    yield from _base64(value)


def _escaped(text: str) -> Iterator[str]:
    yield text
    if not (text.isascii() and text.isprintable() and _ESCAPED.isdisjoint(text)):
        yield from (json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1])
        yield from (repr(text)[1:-1], ascii(text)[1:-1])


def _base64(value: bytes) -> Iterator[str]:
    """The encoded value, and what of it is the same wherever in an encoded text it stands."""
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        yield encode(value).decode()
        for before in range(3):
            encoded = encode(bytes(before) + value).decode()
            first, end = -(-before * 8 // 6), (before + len(value)) * 8 // 6
            yield encoded[first:end]


def _parts(text: str) -> Iterator[str]:
    """The lines of a value that has several."""
    lines = text.splitlines()
    if len(lines) > 1:
        yield from (line for line in map(str.strip, lines) if len(line) >= SHORTEST_PART)


def _leaves(text: str) -> Iterator[str]:
    """What is a secret of its own inside a value: tokens, and strings of a JSON document."""
    for token in _TOKEN.finditer(text):
        yield from token.group(0, 1)
    if text.startswith(("{", "[")):
        try:
            document: object = orjson.loads(text)
        except orjson.JSONDecodeError:
            return
        for string in _strings(document):
            # Where a token service is reached is no secret, and the most useful word of an error.
            if len(string) >= SHORTEST_PART and not _URL.match(string):
                yield string
                yield from _parts(string)


def _strings(document: object) -> Iterator[str]:
    pending = [document]
    while pending:
        match pending.pop():
            case str() as string:
                yield string.strip()
            case dict() as mapping:
                pending.extend(mapping.values())
            case list() as items:
                pending.extend(items)


def _nearest(text: str, start: int, forms: list[str]) -> list[str]:
    """Return those of ``forms``, which are sorted, that have most in common with ``text``."""
    if len(forms) == 1:
        return forms
    place = bisect(forms, text[start : start + max(map(len, forms))])
    return forms[max(0, place - 1) : place + 1]


def _in_common(text: str, start: int, form: str) -> int:
    """Return how many characters of ``form`` stand at ``start``; its head is known to."""
    least, most = min(len(form), _QUOTED), min(len(form), len(text) - start)
    while least < most:
        middle = (least + most + 1) // 2
        if text.startswith(form[:middle], start):
            least = middle
        else:
            most = middle - 1
    return least


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    kept, position = [], 0
    for start, end in spans:
        kept += [text[position:start], MASK]
        position = end
    return "".join([*kept, text[position:]])
