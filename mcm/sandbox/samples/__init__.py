"""The objects ``make start`` applies: a fleet of three machines, and pods that run on it."""

from __future__ import annotations

from importlib.resources import files

import yaml

from mcm.api.meta import JSONObject


def load() -> list[JSONObject]:
    """Return the fleet in the order it is to be applied: a Secret, two classes, a deployment."""
    return _documents("fleet")


def load_workload() -> list[JSONObject]:
    """Return a Deployment with a budget and a StatefulSet with volumes."""
    return _documents("workload")


def _documents(folder: str) -> list[JSONObject]:
    documents: list[JSONObject] = []
    for path in sorted((files(__name__) / folder).iterdir(), key=lambda p: p.name):
        if path.name.endswith(".yaml"):
            documents += [d for d in yaml.safe_load_all(path.read_text()) if d]
    return documents
