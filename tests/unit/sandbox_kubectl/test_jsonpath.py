from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.meta import JSONObject
from mcm.sandbox.apiserver.tables.jsonpath import PathError, find_all

DOCUMENT: JSONObject = {
    "metadata": {"name": "m", "labels": {"a.b/c": "dotted", "plain": "p"}},
    "spec": {"replicas": 3, "paused": False, "none": None, "sizes": [1, 2, 3]},
    "status": {
        "conditions": [
            {"type": "Ready", "status": "True", "age": 5},
            {"type": "Disk", "status": "False", "age": 50, "reason": "x"},
        ]
    },
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".metadata.name", ["m"]),
        ("metadata.name", ["m"]),
        ("{.metadata.name}", ["m"]),
        ("$.metadata.name", ["m"]),
        (".metadata.labels['a.b/c']", ["dotted"]),
        ('.metadata.labels["a.b/c"]', ["dotted"]),
        (".metadata.labels.a\\.b/c", ["dotted"]),
        (".spec.missing.deeper", []),
        (".metadata.name.deeper", []),
        (".spec.none", [None]),
        (".spec.paused", [False]),
        (".spec.sizes[0]", [1]),
        (".spec.sizes[-1]", [3]),
        (".spec.sizes[9]", []),
        (".spec.sizes[*]", [1, 2, 3]),
        (".metadata.labels.*", ["dotted", "p"]),
        (".status.conditions[*].type", ["Ready", "Disk"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Disk')].status", ["False"]),
        ('.status.conditions[?(@.type!="Ready")].type', ["Disk"]),
        (".status.conditions[?(@.age>10)].type", ["Disk"]),
        (".status.conditions[?(@.age<=5)].type", ["Ready"]),
        (".status.conditions[?(@.reason)].type", ["Disk"]),
        ('.status.conditions[?(@.type=="Other")].status', []),
        (".spec.sizes[?(@>1)]", [2, 3]),
        (".", [DOCUMENT]),
    ],
)
def test_a_path_selects_what_it_names(path: str, expected: list[object]) -> None:
    assert find_all(path, DOCUMENT) == expected


@pytest.mark.parametrize("path", [".a[", ".a[b]", ".a..b", '.a[?(@.x=="y]', ".a[?(@.x==y)]"])
def test_text_that_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(PathError):
        find_all(path, DOCUMENT)


@given(st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=8))
def test_any_member_can_be_reached_by_its_quoted_name(name: str) -> None:
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    if "\n" not in name:
        assert find_all(f".x['{quoted}']", {"x": {name: 1}}) == [1]
