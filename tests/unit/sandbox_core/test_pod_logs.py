"""Pods of the sandbox run nothing; who asks for their logs is told so."""

from __future__ import annotations

import pytest

from tests.unit.sandbox_core.workbench import PODS, Workbench


@pytest.fixture
def logged(api: Workbench) -> Workbench:
    for name, containers in (("one", ["a"]), ("two", ["a", "b"])):
        spec = {"containers": [{"name": c, "image": "i"} for c in containers]}
        api.create(PODS, {"metadata": {"name": name}, "spec": spec})
    return api


@pytest.mark.parametrize(
    ("pod", "query", "status", "says"),
    [
        ("one", {}, 200, "container a runs nothing"),
        ("two", {"container": "b"}, 200, "container b runs nothing"),
        ("two", {}, 400, "choose one of: [a b]"),
        ("one", {"container": "x"}, 400, "container x is not valid for pod one"),
        ("none", {}, 404, 'pods \\"none\\" not found'),
    ],
)
def test_a_log_says_that_there_is_none(
    logged: Workbench, pod: str, query: dict[str, str], status: int, says: str
) -> None:
    answer = logged.send("GET", f"{PODS}/{pod}/log", **query)
    assert answer.status == status
    assert says in answer.text.decode()
