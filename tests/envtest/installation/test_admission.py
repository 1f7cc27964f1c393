"""A real API server takes everything that the chart renders, strictly, and knows each field."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.charts.conftest import find_helm
from tests.charts.helm_binary import Helm, Manifest
from tests.charts.test_rendering import FILES, rendered
from tests.envtest.bench import APPLY, Bench, Document, Peer
from tests.envtest.control_plane import ControlPlane

pytestmark = pytest.mark.envtest

NAMESPACES = ("chart-admission", "machines", "shoot--team--prod")
PODS = f"/api/v1/namespaces/{NAMESPACES[0]}/pods"
_OF_OTHERS = {"ServiceMonitor", "PrometheusRule", "Certificate", "Issuer"}
"""Kinds of operators that are not there: nobody but them knows their schemas."""


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    return find_helm(tmp_path_factory)


@pytest.fixture
async def admin(control_plane: ControlPlane) -> AsyncIterator[Bench]:
    bench = Bench(
        Peer("real", control_plane.spec(), control_plane.compact, control_plane.spec), NAMESPACES[0]
    )
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    for name in NAMESPACES:
        namespace = {"metadata": {"name": name, "labels": labels}}
        await bench.send("POST", "/api/v1/namespaces", namespace)
    try:
        yield bench
    finally:
        await bench.aclose()


async def test_everything_is_taken_with_no_field_unknown(admin: Bench, helm: Helm) -> None:
    paths = await _paths_by_kind(admin)
    taken = set()
    for name in FILES:
        for manifest in rendered(helm, name, namespace=admin.namespace):
            if manifest["kind"] in _OF_OTHERS:
                continue
            path = paths[manifest["apiVersion"], manifest["kind"]](manifest)
            query = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "chart"}
            answer = await admin.send("PATCH", path, manifest, media=APPLY, force="true", **query)
            assert answer.status in (200, 201), (manifest["kind"], answer.text)
            assert "warning" not in answer.headers, (manifest["kind"], answer.headers)
            taken.add(manifest["kind"])
    assert taken >= {"Deployment", "NetworkPolicy", "PodDisruptionBudget", "PriorityClass", "Pod"}


async def test_every_form_follows_on_every_other_and_back(admin: Bench, helm: Helm) -> None:
    """An upgrade, and the rollback from it: no field that cannot be changed differs."""
    paths = await _paths_by_kind(admin)
    made: set[str] = set()
    try:
        for name in (*FILES, *reversed(FILES)):
            for manifest in rendered(helm, name, namespace=admin.namespace):
                if manifest["kind"] not in (*_OF_OTHERS, "Pod", "CustomResourceDefinition"):
                    path = paths[manifest["apiVersion"], manifest["kind"]](manifest)
                    query = {"fieldManager": "helm", "force": "true"}
                    answer = await admin.send("PATCH", path, manifest, media=APPLY, **query)
                    assert answer.status in (200, 201), (name, manifest["kind"], answer.text)
                    made.add(path)
    finally:
        for path in made:
            await admin.send("DELETE", path)
    assert len(made) >= 20


@pytest.mark.parametrize("name", [name for name in FILES if name != "access"])
async def test_pods_pass_the_restricted_standard(admin: Bench, helm: Helm, name: str) -> None:
    manifests = rendered(helm, name, namespace=admin.namespace)
    pods = [
        {"metadata": {"generateName": "p-"}, "spec": _pod_spec(manifest)}
        for manifest in manifests
        if manifest["kind"] in ("Deployment", "Pod")
    ]
    assert len(pods) == 2
    for pod in pods:
        pod["spec"].pop("priorityClassName", None)  # which exists after an installation only
        await admin.create(PODS, pod, dryRun="All")
    pods[0]["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    answer = await admin.send("POST", PODS, pods[0], dryRun="All")
    assert answer.status == 403 and b"restricted" in answer.text


def _pod_spec(manifest: Manifest) -> Document:
    spec: Document = manifest["spec"]
    return spec["template"]["spec"] if manifest["kind"] == "Deployment" else spec


async def _paths_by_kind(admin: Bench) -> dict[tuple[str, str], _PathOf]:
    found = {}
    groups = ["v1"] + [
        group["preferredVersion"]["groupVersion"] for group in (await admin.get("/apis"))["groups"]
    ]
    for version in groups:
        root = f"/api/{version}" if version == "v1" else f"/apis/{version}"
        for resource in (await admin.get(root))["resources"]:
            if "/" not in resource["name"]:
                found[version, resource["kind"]] = _PathOf(root, resource)
    return found


class _PathOf:
    """The path of an object of one kind."""

    def __init__(self, root: str, resource: Document) -> None:
        self._root = root
        self._plural: str = resource["name"]
        self._namespaced: bool = resource["namespaced"]

    def __call__(self, manifest: Manifest) -> str:
        meta = manifest["metadata"]
        within = f"/namespaces/{meta['namespace']}" if self._namespaced else ""
        return f"{self._root}{within}/{self._plural}/{meta['name']}"
