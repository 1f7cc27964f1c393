"""Kubernetes' protobuf encoding of request bodies, for clients that send nothing else.

``kubectl`` and other Go programs encode built-in kinds so when they create, evict or ask for a
review; :func:`to_json` turns such a body into the JSON the server works with. Answers stay JSON,
which every client takes. The kinds and fields are those of :mod:`messages`; a body with anything
else in it is refused as a whole (:class:`Unsupported`), so that nothing is ever lost in silence.
"""

from __future__ import annotations

from mcm.sandbox.apiserver.protobuf.decoding import CONTENT_TYPE, Unsupported, to_json

__all__ = ["CONTENT_TYPE", "Unsupported", "to_json"]
