"""Rules of access: what they grant one by one, and their YAML."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mcm.access import PURPOSES, Purpose, Rule, purpose
from mcm.access.rule_files import rules_as_yaml
from mcm.access.rules import Access
from mcm.controllers.selection import Group

WORDS = st.sampled_from(
    ["nodes", "pods/eviction", "machine.sapcloud.io", "a-very-long-name-of-a-resource-there-is"]
)
SOME = st.lists(WORDS, min_size=1, max_size=8).map(tuple)
RULES = st.builds(
    Rule,
    groups=st.lists(st.just("") | WORDS, min_size=1, max_size=3).map(tuple),
    resources=SOME,
    verbs=SOME,
    names=st.just(()) | SOME,
    reason=st.just("") | WORDS,
)


@given(st.lists(RULES, min_size=1, max_size=4).map(tuple))
def test_the_yaml_says_what_the_rules_say(rules: tuple[Rule, ...]) -> None:
    text = rules_as_yaml(Purpose("some", "What it is for.", rules))
    assert text.startswith("# What it is for.\n")
    assert text.endswith("\n")
    assert yaml.safe_load(text) == [
        {
            "apiGroups": list(rule.groups),
            "resources": list(rule.resources),
            **({"resourceNames": list(rule.names)} if rule.names else {}),
            "verbs": list(rule.verbs),
        }
        for rule in rules
    ]


@given(RULES)
def test_a_rule_grants_every_verb_on_every_resource(rule: Rule) -> None:
    granted = list(rule.accesses())
    names = len(rule.names) or 1
    assert len(granted) == len(rule.groups) * len(rule.resources) * len(rule.verbs) * names
    assert {access.resource for access in granted} == set(rule.resources)
    assert {access.name for access in granted} == (set(rule.names) or {""})


def test_a_rule_of_names_grants_those_alone() -> None:
    rule = Rule(("g",), ("leases",), ("get",), names=("a", "b"))
    assert list(rule.accesses()) == [
        Access("g", "leases", "get", "a"),
        Access("g", "leases", "get", "b"),
    ]


def test_no_rule_grants_more_than_it_names() -> None:
    for each in PURPOSES:
        for rule in each.rules:
            assert "*" not in {*rule.groups, *rule.resources, *rule.verbs}
            assert rule.verbs == tuple(sorted(rule.verbs))


def test_rules_are_for_groups_of_controllers_that_there_are() -> None:
    groups = {rule.only_for for each in PURPOSES for rule in each.rules}
    assert groups <= {"", *Group}
    assert Group.MACHINES in groups


def test_a_purpose_is_found_by_its_name() -> None:
    assert purpose("target") in PURPOSES
    assert len({each.name for each in PURPOSES}) == len(PURPOSES)
    with pytest.raises(KeyError):
        purpose("nobody")
