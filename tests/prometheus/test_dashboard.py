"""The dashboard as Grafana wants it, over families that there are."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.metrics.table import families
from tests.prometheus import dashboard, rules

_SUFFIX = re.compile("_(bucket|count|sum)$")
SHOWN: Any = json.loads(dashboard.as_json())


def test_it_can_be_told_apart_and_chosen_from() -> None:
    assert SHOWN["uid"] and SHOWN["title"] and SHOWN["schemaVersion"] >= 36
    variables = {v["name"]: v["type"] for v in SHOWN["templating"]["list"]}
    assert variables == {
        "datasource": "datasource",
        "namespace": "query",
        "job": "query",
        "instance": "query",
    }


def test_no_two_panels_lie_on_one_place_or_share_a_number() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in SHOWN["panels"]:
        at = panel["gridPos"]
        squares = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
        assert not squares & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= squares
    numbers = [panel["id"] for panel in SHOWN["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_every_panel_says_what_to_see_and_asks_the_chosen_source() -> None:
    for panel in SHOWN["panels"]:
        if panel["type"] == "row":
            continue
        assert panel["description"].endswith("."), panel["title"]
        assert panel["targets"], panel["title"]
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == "${datasource}"
            assert 'instance=~"$instance"' in target["expr"], panel["title"]


def test_every_query_reads_families_that_there_are() -> None:
    known = families()
    for place, query in dashboard.queries():
        names = set(rules.metrics_in(query))
        assert names, place
        unknown = {n for n in names if n not in known and _SUFFIX.sub("", n) not in known}
        assert not unknown, place
