"""The table of flags against the groups of options that it sets."""

from __future__ import annotations

import dataclasses
from collections import Counter

from mcm.configuration.table import GROUPS, all_flags
from mcm.controllers.settings import ControllerSettings
from mcm.options import Options


def test_every_option_has_one_flag() -> None:
    groups = [getattr(Options(), field.name) for field in dataclasses.fields(Options)]
    options = Counter((type(g), f.name) for g in groups for f in dataclasses.fields(g))
    assert Counter((flag.owner, flag.field) for flag in all_flags()) == options


def test_no_name_is_given_twice_and_each_is_kebab_case() -> None:
    names = [flag.name for flag in all_flags()]
    assert len(set(names)) == len(names)
    assert all(name == name.lower() and "_" not in name for name in names)


def test_the_controllers_flags_are_named_as_their_settings_say() -> None:
    named = {f.name: f.metadata["flag"] for f in dataclasses.fields(ControllerSettings)}
    rows = {flag.field: flag.name for flag in all_flags() if flag.owner is ControllerSettings}
    assert rows == named


def test_every_group_and_flag_says_what_it_is() -> None:
    assert all(group.title and group.flags for group in GROUPS)
    assert [flag.name for flag in all_flags() if not flag.help.endswith((".", ":"))] == []
