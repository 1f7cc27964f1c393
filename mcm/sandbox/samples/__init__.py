"""The objects ``make start`` applies: a Secret, two classes, a deployment of three."""

from __future__ import annotations

from importlib.resources import files

import yaml

from mcm.api.meta import JSONObject


def load() -> list[JSONObject]:
    """Return the sample objects in the order they are to be applied."""
    documents: list[JSONObject] = []
    for path in sorted(files(__name__).iterdir(), key=lambda p: p.name):
        if path.name.endswith(".yaml"):
            documents += [d for d in yaml.safe_load_all(path.read_text()) if d]
    return documents
