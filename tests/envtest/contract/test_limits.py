"""How big, deep and repetitive a request may be."""

from __future__ import annotations

import pytest

from tests.envtest.bench import JSON_PATCH, MERGE, Bench
from tests.envtest.contract.objects import config_map, machine

YAML = "application/yaml"
HEAD = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
LARGEST = 256 * 1024


async def test_annotations_have_a_size_together(api: Bench) -> None:
    fits = config_map("c")
    fits["metadata"]["annotations"] = {"k": "x" * (LARGEST - 1)}
    await api.create(api.config_maps(), fits)
    await api.create(api.machines(), machine("m"))
    change = {"metadata": {"annotations": {"k": "ä" * (LARGEST // 2)}}}
    for path in (api.config_maps("c"), api.machines("m")):
        answer = await api.send("PATCH", path, change, media=MERGE)
        assert (answer.status, answer.reason) == (422, "Invalid")
        assert answer.causes == [("FieldValueTooLong", "metadata.annotations")]
        (message,) = {cause["message"] for cause in answer.body["details"]["causes"]}
        assert message == "Too long: may not be more than 262144 bytes"


async def test_yaml_aliases_may_not_multiply(api: Bench) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for below, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{below}'] * 9)}]")
    answer = await api.send("POST", api.config_maps(), HEAD + "\n".join(lines).encode(), media=YAML)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert "yaml: document contains excessive aliasing" in answer.body["message"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (b"x: &a [*a]\n", "anchor 'a' value contains itself"),
        (b"x: [*a]\n", "unknown anchor 'a' referenced"),
        (b"x: " + b"[" * 20_000 + b"]" * 20_000, "exceeded max depth of"),
        (b"x: !!int abc\n", "yaml: "),
        (b"x: !!bool abc\n", "yaml: "),
    ],
)
async def test_yaml_that_means_nothing_is_refused(api: Bench, more: bytes, words: str) -> None:
    answer = await api.send("POST", api.config_maps(), HEAD + more, media=YAML)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert words in answer.body["message"]


async def test_yaml_aliases_and_merges_are_read(api: Bench) -> None:
    meta = b"{name: c, labels: &l {a: b}, annotations: {<<: *l, c: d}}"
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: %s\ndata: *l\n---\nkind: [\n" % meta
    answer = await api.send("POST", api.config_maps(), body, media=YAML)
    assert answer.status == 201
    assert answer.body["data"] == answer.body["metadata"]["labels"] == {"a": "b"}
    assert answer.body["metadata"]["annotations"] == {"a": "b", "c": "d"}


async def test_json_that_is_too_deep_is_refused(api: Bench) -> None:
    deep = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"x":%s}' % deep
    answer = await api.send("POST", api.config_maps(), body)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    await api.create(api.config_maps(), config_map("c"))
    answer = await api.send("PATCH", api.config_maps("c"), b'{"x":%s}' % deep, media=MERGE)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_copies_of_copies_do_not_multiply(api: Bench) -> None:
    await api.create(api.config_maps(), config_map("c", text="y" * 1000))
    copies = [{"op": "copy", "from": "/data", "path": f"/data/c{i}"} for i in range(40)]
    answer = await api.send("PATCH", api.config_maps("c"), copies, media=JSON_PATCH)
    assert (answer.status, answer.reason) == (422, "Invalid")


@pytest.mark.parametrize("limit", ["--5", "5_0", "٥", " 5", "9223372036854775808"])
async def test_a_limit_is_a_whole_number_of_64_bits(api: Bench, limit: str) -> None:
    answer = await api.send("GET", api.config_maps(), limit=limit)
    assert (answer.status, answer.reason) == (400, "BadRequest")


async def test_a_limit_below_one_is_none(api: Bench) -> None:
    for name in "abc":
        await api.create(api.config_maps(), config_map(name))
    for limit in ("-5", "-0", "0", "9223372036854775807"):
        assert await api.names(api.config_maps(), limit=limit) == ["a", "b", "c"]
    assert await api.names(api.config_maps(), limit="+2") == ["a", "b"]
    token = (await api.get(api.config_maps(), limit="1"))["metadata"]["continue"]
    rest = await api.names(api.config_maps(), limit="-5", **{"continue": token})
    assert rest == ["b", "c"]
