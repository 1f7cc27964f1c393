"""Which requests a rule covers, over all rules and requests."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mcm.sandbox.apiserver.authentication.users import User
from mcm.sandbox.apiserver.authorization.attributes import Attributes, attributes_of
from mcm.sandbox.apiserver.authorization.rules import allows

WORDS = st.sampled_from(["a", "b", "c"])
LISTS = st.lists(st.sampled_from(["a", "b", "*"]), max_size=3)
RULES = st.fixed_dictionaries(
    {"verbs": LISTS, "apiGroups": LISTS, "resources": LISTS},
    optional={"resourceNames": st.lists(WORDS, max_size=2)},
)
REQUESTS = st.builds(
    Attributes,
    user=st.just(User("x")),
    verb=WORDS,
    group=WORDS,
    resource=WORDS,
    subresource=st.sampled_from(["", "s"]),
    name=st.sampled_from(["", "a", "b"]),
)


@given(RULES, REQUESTS)
def test_a_rule_covers_what_each_of_its_lists_names(
    rule: dict[str, list[str]], asked: Attributes
) -> None:
    resources = {
        "*",
        asked.full_resource,
        *([f"*/{asked.subresource}"] if asked.subresource else []),
    }
    expected = (
        bool({"*", asked.verb} & set(rule["verbs"]))
        and bool({"*", asked.group} & set(rule["apiGroups"]))
        and bool(resources & set(rule["resources"]))
        and (not rule.get("resourceNames") or asked.name in rule["resourceNames"])
    )
    assert allows(dict(rule), asked) is expected


@given(RULES, REQUESTS, st.sampled_from(["verbs", "apiGroups", "resources"]), WORDS)
def test_a_longer_list_never_takes_a_right(
    rule: dict[str, list[str]], asked: Attributes, field: str, word: str
) -> None:
    longer = {**rule, field: [*rule[field], word]}
    assert allows(dict(longer), asked) or not allows(dict(rule), asked)


def test_paths_are_covered_whole_or_by_their_beginning() -> None:
    rule: dict[str, object] = {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/healthz/*"]}

    def covered(path: str) -> bool:
        return allows(rule, attributes_of(User("x"), "GET", path, {}))

    assert covered("/metrics")
    assert covered("/healthz/etcd")
    assert not covered("/metrics/more")
    assert not covered("/healthz")
    assert not covered("/api/v1/nodes")


def test_a_request_is_read_off_its_path() -> None:
    user = User("x")

    def read(method: str, path: str, **query: str) -> tuple[str, ...]:
        a = attributes_of(user, method, path, query)
        return (a.verb, a.group, a.full_resource, a.namespace, a.name)

    assert read("GET", "/api/v1/namespaces/n/pods") == ("list", "", "pods", "n", "")
    assert read("GET", "/api/v1/pods", watch="1") == ("watch", "", "pods", "", "")
    assert read("GET", "/api/v1/namespaces/n") == ("get", "", "namespaces", "n", "n")
    assert read("PUT", "/api/v1/namespaces/n/finalize")[2] == "namespaces/finalize"
    assert read("DELETE", "/apis/g/v1/things") == ("deletecollection", "g", "things", "", "")
    one = {"fieldSelector": "metadata.name=x"}
    assert read("GET", "/api/v1/namespaces/n/pods", **one) == ("list", "", "pods", "n", "x")
    assert read("POST", "/api/v1/namespaces/n/pods/p/eviction")[:3] == (
        "create",
        "",
        "pods/eviction",
    )
    assert attributes_of(user, "GET", "/apis/g/v1", {}).is_for_resource is False
