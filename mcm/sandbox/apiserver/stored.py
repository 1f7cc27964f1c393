"""One state of one object, parsed and encoded: shared by everybody, so never to be changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Self, cast, final

import orjson

from mcm.api.meta import JSONObject


@final
class Stored:
    """One state of one object. ``encoded`` is ``body`` as JSON; ``revision`` its resourceVersion;
    ``created`` the revision at which this incarnation began; ``api_version`` is
    that of the body."""

    __slots__ = (
        "api_version",
        "body",
        "created",
        "encoded",
        "key",
        "metadata",
        "name",
        "namespace",
        "revision",
        "views",
    )

    def __init__(
        self, namespace: str, name: str, body: JSONObject, *, revision: int, created: int
    ) -> None:
        self.namespace = namespace
        self.name = name
        self.key = f"{namespace}/{name}" if namespace else name
        self.body = body
        self.metadata = cast(JSONObject, body["metadata"])
        self.metadata["resourceVersion"] = str(revision)
        self.encoded = orjson.dumps(body)
        self.api_version = cast(str, body.get("apiVersion", ""))
        self.revision = revision
        self.created = created
        self.views: dict[str, bytes] | None = None

    @classmethod
    def restored(
        cls, namespace: str, name: str, encoded: bytes, *, api_version: str, revision: int
    ) -> Self:
        """Return an object as it was kept elsewhere, its resourceVersion included. Its body is
        parsed when somebody first asks for it, which for most of a large cluster is never."""
        made = cls.__new__(cls)
        made.namespace = namespace
        made.name = name
        made.key = f"{namespace}/{name}" if namespace else name
        made.encoded = encoded
        made.api_version = api_version
        made.revision = made.created = revision
        made.views = None
        return made

    if not TYPE_CHECKING:  # it would let every misspelt attribute pass

        def __getattr__(self, attribute: str) -> object:
            """Parse a restored object: only its attributes that are not set yet are looked for."""
            if attribute not in ("body", "metadata"):
                raise AttributeError(f"{type(self).__name__} has no attribute {attribute!r}")
            self.body = orjson.loads(self.encoded)
            self.metadata = self.body["metadata"]
            return getattr(self, attribute)

    @property
    def uid(self) -> str:
        return cast(str, self.metadata.get("uid", ""))

    @property
    def labels(self) -> dict[str, str]:
        return cast("dict[str, str]", self.metadata.get("labels") or {})

    @property
    def finalizers(self) -> list[str]:
        return cast("list[str]", self.metadata.get("finalizers") or [])

    @property
    def owner_references(self) -> list[JSONObject]:
        return cast("list[JSONObject]", self.metadata.get("ownerReferences") or [])

    @property
    def terminating(self) -> bool:
        return "deletionTimestamp" in self.metadata

    def restamped(self, revision: int) -> Stored:
        """Return the same state under another revision."""
        body = {**self.body, "metadata": dict(self.metadata)}
        return Stored(self.namespace, self.name, body, revision=revision, created=self.created)

    def view(self, key: str, encode: Callable[[Stored], bytes]) -> bytes:
        """Return another encoding of the object, made once a ``key``."""
        if self.views is None:
            self.views = {}
        found = self.views.get(key)
        if found is None:
            found = self.views[key] = encode(self)
        return found

    def __repr__(self) -> str:
        return f"Stored({self.key!r}, revision={self.revision})"
