from __future__ import annotations

import pytest

from tests.envtest.bench import Bench
from tests.envtest.contract.objects import machine, pod


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("pool=a", ["one"]),
        ("pool==a", ["one"]),
        ("pool!=a", ["none", "two"]),
        ("pool in (a,b)", ["one", "two"]),
        ("pool notin (a)", ["none", "two"]),
        ("pool", ["one", "two"]),
        ("!pool", ["none"]),
        ("pool,tier=x", ["two"]),
        ("tier>0", []),
        ("", ["none", "one", "two"]),
    ],
)
async def test_labels_select(api: Bench, selector: str, found: list[str]) -> None:
    await api.create(api.machines(), machine("one", {"pool": "a"}))
    await api.create(api.machines(), machine("two", {"pool": "b", "tier": "x"}))
    await api.create(api.machines(), machine("none"))
    assert await api.names(api.machines(), labelSelector=selector) == found


@pytest.mark.parametrize("selector", ["pool in", "a=b=c", "=a", "pool in (", "a b", "tier>x"])
async def test_a_malformed_label_selector_is_a_bad_request(api: Bench, selector: str) -> None:
    answer = await api.send("GET", api.machines(), labelSelector=selector)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_fields_select(api: Bench) -> None:
    await api.create(api.pods(), pod("a", nodeName="n"))
    await api.create(api.pods(), pod("b"))
    assert await api.names(api.pods(), fieldSelector="spec.nodeName=n") == ["a"]
    assert await api.names(api.pods(), fieldSelector="spec.nodeName!=n") == ["b"]
    assert await api.names(api.pods(), fieldSelector="spec.nodeName=") == ["b"]
    assert await api.names(api.pods(), fieldSelector="metadata.name=b") == ["b"]
    both = "metadata.name=a,status.phase=Pending"
    assert await api.names(api.pods(), fieldSelector=both) == ["a"]
    mine = f"metadata.namespace={api.namespace}"
    assert await api.names("/api/v1/pods", fieldSelector=mine) == ["a", "b"]


@pytest.mark.parametrize("selector", ["spec.class=x", "status.phase=Running", "nonsense"])
async def test_fields_nobody_indexed_cannot_select(api: Bench, selector: str) -> None:
    answer = await api.send("GET", api.machines(), fieldSelector=selector)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_field_selector_narrows_a_watch(api: Bench) -> None:
    version = await api.version(api.pods())
    async with api.watch(
        api.pods(), resourceVersion=version, fieldSelector="spec.nodeName=n"
    ) as watch:
        await api.create(api.pods(), pod("elsewhere", nodeName="m"))
        await api.create(api.pods(), pod("waiting"))
        await api.create(api.pods(), pod("here", nodeName="n"))
        assert await watch.take(1) == [("ADDED", "here")]


async def test_a_watch_with_a_malformed_selector_is_refused(api: Bench) -> None:
    answer = await api.send("GET", api.machines(), watch="1", labelSelector="=")
    assert (answer.status, answer.reason) == (400, "BadRequest")
