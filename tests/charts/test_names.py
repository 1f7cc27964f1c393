"""Names: valid for every release, no two alike in a cluster, and the same after an upgrade."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.charts.helm_binary import Helm, Manifest
from tests.charts.test_rendering import FILES, rendered

_LABEL = re.compile(r"[a-z]([a-z0-9-]{0,61}[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")

LONG = "an-exceedingly-long-name-of-a-release-for-the-machine"
assert len(LONG) == 53, "as long as helm lets them be"
RELEASES = ("mcm", "m", "1st", "team.prod", LONG, f"{LONG[:-4]}-mcm")


def names(manifests: list[Manifest]) -> list[tuple[str, str, str]]:
    return [
        (m["kind"], m["metadata"].get("namespace", ""), m["metadata"]["name"]) for m in manifests
    ]


@pytest.mark.parametrize("release", RELEASES)
def test_names_and_labels_are_valid_for_every_release(helm: Helm, release: str) -> None:
    for manifest in rendered(helm, "everything", release=release, namespace="n" * 63):
        meta = manifest["metadata"]
        strict = manifest["kind"] in ("Service", "Deployment", "Secret", "ConfigMap", "Pod")
        assert (_LABEL if strict else _SUBDOMAIN).fullmatch(meta["name"]), meta["name"]
        assert len(meta["name"]) <= 253
        for value in meta["labels"].values():
            assert _LABEL_VALUE.fullmatch(value), value


def test_releases_share_no_name_with_one_another_but_the_simulated_kind(helm: Helm) -> None:
    found: Counter[tuple[str, str, str]] = Counter()
    for release, namespace in (
        *((release, "mcm") for release in RELEASES),
        # Cut at another place, namespace and release are the same letters.
        ("c-mcm", "a-b"),
        ("b-c-mcm", "a"),
    ):
        values = {
            "priorityClass": {"create": True},
            "webhook": {"enabled": True},
            "flowControl": {"enabled": True},
        }
        found.update(names(helm.template(values=values, release=release, namespace=namespace)))
    twice = {kind for (kind, _, _), count in found.items() if count > 1}
    assert twice == {"CustomResourceDefinition"}


def test_two_releases_may_manage_one_namespace_from_others(helm: Helm) -> None:
    values = {"manager": {"namespace": "machines"}}
    first, second = (set(names(helm.template(values=values, namespace=n))) for n in ("one", "two"))
    assert {kind for kind, _, _ in first & second} == {"CustomResourceDefinition"}


def test_what_cannot_be_changed_is_the_same_in_every_form_of_a_release(helm: Helm) -> None:
    """An upgrade from any values to any others is possible in place, and so is the rollback."""
    fixed: dict[tuple[str, str, str], set[str]] = {}
    for name in FILES:
        for manifest in rendered(helm, name):
            meta = manifest["metadata"]
            key = (manifest["kind"], meta.get("namespace", ""), meta["name"])
            fixed.setdefault(key, set()).add(repr(_unchangeable(manifest)))
    assert {key: values for key, values in fixed.items() if len(values) > 1} == {}


def test_another_value_of_priority_is_another_class(helm: Helm) -> None:
    def class_of(**values: object) -> str:
        manifests = helm.template(values={"priorityClass": {"create": True, **values}})
        (name,) = (m["metadata"]["name"] for m in manifests if m["kind"] == "PriorityClass")
        (deployment,) = (m for m in manifests if m["kind"] == "Deployment")
        assert deployment["spec"]["template"]["spec"]["priorityClassName"] == name
        return str(name)

    assert len({class_of(), class_of(value=5), class_of(preemptionPolicy="Never")}) == 3


def _unchangeable(manifest: Manifest) -> object:
    match manifest["kind"]:
        case "Deployment":
            return manifest["spec"]["selector"]
        case "PriorityClass":
            return manifest["value"], manifest["preemptionPolicy"]
        case "RoleBinding" | "ClusterRoleBinding":
            return manifest["roleRef"]
        case "Secret":
            return manifest["type"]
        case _:
            return None
