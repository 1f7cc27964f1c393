"""Bodies into which names and numbers are filled as text: microseconds an object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import orjson

from mcm.api.meta import JSONObject

WORKLOAD: Final = "workload"
"""The namespace of all that runs on the Nodes."""
TIME: Final = "2026-01-01T10:00:00Z"
NODE, NAME, APP, NUMBER = "@node@", "@name@", "@app@", "@number@"

_UID: Final = f"-0000-4000-8000-{NUMBER}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A body in which Node, name, application and number are to be filled in."""

    text: bytes

    @classmethod
    def of(cls, document: JSONObject) -> Pattern:
        return cls(orjson.dumps(document))

    def filled(self, *, node: str = "", name: str, app: str = "", number: int) -> bytes:
        """Return the body of object ``number`` of its kind."""
        text = self.text.replace(b"@name@", name.encode()).replace(b"@node@", node.encode())
        return text.replace(b"@app@", app.encode()).replace(b"@number@", b"%012d" % number)


def uid(family: str) -> str:
    """Return the UID of the object of this number; ``family`` is eight digits."""
    return f"{family}{_UID}"


def metadata(family: str, *, namespaced: bool = True) -> JSONObject:
    place: JSONObject = {"namespace": WORKLOAD} if namespaced else {}
    return {
        "name": NAME,
        **place,
        "uid": uid(family),
        "resourceVersion": "0",
        "creationTimestamp": TIME,
    }


def managed(manager: str, api_version: str, fields: JSONObject) -> JSONObject:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": api_version,
        "time": TIME,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
