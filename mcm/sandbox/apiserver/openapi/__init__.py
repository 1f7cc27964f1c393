"""OpenAPI: what ``kubectl`` reads before it applies, and what ``kubectl explain`` prints.

``/openapi/v3`` is an index of one document a group and version; ``/openapi/v2`` one document of
all. Both are rendered from the registry on request: schemas of custom resources as defined, those
of built-in kinds as far as :mod:`mcm.sandbox.apiserver.kinds` knows them. In JSON; a client that
takes version 2 in protobuf alone (any kubectl) gets a bare document, and uses version 3.
"""

from __future__ import annotations

from mcm.sandbox.apiserver.openapi.documents import openapi_response

__all__ = ["openapi_response"]
