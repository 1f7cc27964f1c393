from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.informers.lines import LineSplitter, LineTooLong

TEXTS = st.text(alphabet=st.sampled_from('ab{}" \r\x85\u2028\u2029é日𝄞'), max_size=20)


def cut(data: bytes, at: list[int]) -> list[bytes]:
    """Cut ``data`` at positions, some of which may be equal."""
    points = [0, *sorted(n % (len(data) + 1) for n in at), len(data)]
    return [data[a:b] for a, b in pairwise(points)]


@given(st.lists(TEXTS, max_size=8), st.lists(st.integers(0, 10_000), max_size=12), TEXTS)
def test_any_cutting_gives_the_same_lines(texts: list[str], at: list[int], torn: str) -> None:
    lines = [json.dumps({"x": text}, ensure_ascii=False).encode() for text in texts]
    tail = torn.encode()
    splitter = LineSplitter()
    data = b"".join(line + b"\n" for line in lines) + tail
    got = [line for chunk in cut(data, at) for line in splitter.feed(chunk)]
    assert got == lines
    assert splitter.torn == bool(tail.strip())


def test_empty_lines_are_no_lines() -> None:
    splitter = LineSplitter()
    assert list(splitter.feed(b"\n\r\n{}\n\n")) == [b"{}"]
    assert not splitter.torn


def test_a_line_without_end_is_refused_before_it_fills_the_memory() -> None:
    splitter = LineSplitter(longest=100)
    assert list(splitter.feed(b"x" * 60)) == []
    with pytest.raises(LineTooLong):
        splitter.feed(b"x" * 60)


def test_the_limit_is_for_one_line_not_for_the_stream() -> None:
    splitter = LineSplitter(longest=100)
    for _ in range(50):
        assert list(splitter.feed(b"y" * 40 + b"\n" + b"x" * 50)) != []
