from __future__ import annotations

import pytest

from mcm.api.machine import Machine
from mcm.api.meta import ObjectMeta
from mcm.controllers.enqueue import others_news
from mcm.controllers.write_guard import author, author_of, reconciling
from mcm.informers import Change

SUBJECT = Machine(metadata=ObjectMeta(name="a", namespace="n"))


@pytest.mark.parametrize(
    ("author_", "expected"),
    [
        ("", ["n/a", "n/b"]),
        ("machine n/a", ["n/b"]),
        ("machine n/c", ["n/a", "n/b"]),
        ("machineset n/a", ["n/a", "n/b"]),
    ],
)
def test_a_change_is_news_to_all_but_the_key_that_wrote_it(
    author_: str, expected: list[str]
) -> None:
    change = Change(SUBJECT, SUBJECT, author=author_)
    assert list(others_news("machine", change, ["n/a", "n/b"])) == expected


def test_the_author_is_the_reconcile_that_is_under_way() -> None:
    assert author() == ""
    with reconciling(author_of("machine", "n/a"), 0.0):
        assert author() == "machine n/a"
    assert author() == ""
