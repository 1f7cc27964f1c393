"""The alerts as they are shipped: valid, judged over series, explained on a page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.metrics.table import families
from tests.prometheus import rules

PAGE = Path(__file__).parents[2] / "docs" / "alerts.md"
CASES = Path(__file__).parent / "alerts.test.yaml"
_SUFFIX = re.compile("_(bucket|count|sum)$")


def test_promtool_takes_the_rules(promtool: Callable[..., tuple[int, str]]) -> None:
    code, said = promtool("check", "rules", "--lint=all", "--lint-fatal", rules.FILE)
    assert (code, f"{len(rules.shipped())} rules found" in said) == (0, True), said


def test_each_fires_on_its_series_and_not_on_its_neighbours(
    promtool: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    shipped = yaml.safe_load(rules.FILE.read_text())
    for rule in (rule for group in shipped["groups"] for rule in group["rules"]):
        del rule["annotations"]  # the cases would have to repeat their texts
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(shipped))
    cases = CASES.read_text().replace("RULES", "rules.yaml")
    (tmp_path / "cases.yaml").write_text(cases)
    code, said = promtool("test", "rules", tmp_path / "cases.yaml")
    assert code == 0, said
    assert {rule.alert for rule in rules.shipped()} == set(re.findall(r"alertname: (\w+)", cases))


def test_each_reads_only_families_that_there_are() -> None:
    known = families()
    for rule in rules.shipped():
        for name in rules.metrics_in(rule.expr):
            assert name in known or _SUFFIX.sub("", name) in known, f"{rule.alert}: {name}"


@pytest.mark.parametrize("rule", rules.shipped(), ids=lambda rule: rule.alert)
def test_each_says_what_why_and_what_to_do(rule: rules.Rule) -> None:
    assert set(rule.annotations) == {"summary", "description", "action", "runbook_url"}
    assert all(text.endswith(".") for key, text in rule.annotations.items() if key != "runbook_url")
    assert rule.labels["severity"] in ("critical", "warning")
    assert rule.annotations["runbook_url"] == f"docs/alerts.md#{rule.alert.lower()}"


def test_the_page_explains_each_and_no_other() -> None:
    explained = re.findall("^### (.*)$", PAGE.read_text(), re.MULTILINE)
    assert sorted(explained) == sorted(rule.alert for rule in rules.shipped())
