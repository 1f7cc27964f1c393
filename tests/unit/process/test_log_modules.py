"""``--vmodule``: which modules log for debugging while the others do not."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from uuid import uuid4

import pytest

from mcm import logs
from mcm.clock import SystemClock
from mcm.log_modules import Rule, is_for_debugging, log_more, rules_of
from mcm.options import Logging


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield
    root.handlers, root.level = handlers, level
    log_more(())


def test_rules_are_read_and_what_is_none_is_named() -> None:
    assert rules_of("a=4, b.*=5,,") == (Rule("a", 4), Rule("b.*", 5))
    assert rules_of("") == ()
    for text in ("a", "a=", "=4", "a=high", "a=4 b=5", "a==4"):
        assert Logging(vmodule=text).validate() != [], text
    assert Logging(vmodule="a=4,b").validate() == [
        "--vmodule: 'b' is no PATTERN=NUMBER (expected some with commas, as leaderelection=4)"
    ]


@pytest.mark.parametrize(
    ("text", "module", "expected"),
    [
        ("elector=4", "mcm.leaderelection.elector", True),
        ("elector=3", "mcm.leaderelection.elector", False),
        ("leaderelection=4", "mcm.leaderelection.elector", True),
        ("leaderelection.elector=4", "mcm.leaderelection.elector", True),
        ("elect*=9", "mcm.leaderelection.elector", True),
        ("controllers.machine=4", "mcm.controllers.machine.health.decision", True),
        ("controllers.machine=4", "mcm.controllers.machineset.sizes", False),
        ("drain=0,*=4", "mcm.drain.engine", False),
        ("drain=0,*=4", "mcm.informers.store", True),
        ("", "mcm.drain.engine", False),
    ],
)
def test_the_first_rule_that_matches_says(text: str, module: str, expected: bool) -> None:
    assert is_for_debugging(rules_of(text), module) is expected


def test_modules_that_are_there_and_those_that_come_later_log_more() -> None:
    room = f"room{uuid4().hex}"
    early, other = (logging.getLogger(f"mcm.{name}.early") for name in (room, "else"))
    written = io.StringIO()
    logs.configure("text", verbosity=0, vmodule=f"{room}=4", clock=SystemClock(), stream=written)
    late = logging.getLogger(f"mcm.{room}.late")
    for logger in (early, late, other):
        logger.debug("of %s", logger.name)
    assert f"of mcm.{room}.early" in written.getvalue()
    assert f"of mcm.{room}.late" in written.getvalue()
    assert "of mcm.else.early" not in written.getvalue()


def test_verbosity_shows_what_no_rule_asks_for() -> None:
    other = logging.getLogger("mcm.some.module")
    written = io.StringIO()
    logs.configure("text", verbosity=4, vmodule="else=4", clock=SystemClock(), stream=written)
    other.debug("all of it")
    assert "all of it" in written.getvalue()
