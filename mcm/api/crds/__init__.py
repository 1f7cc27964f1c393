"""The CustomResourceDefinitions of the four kinds, generated from the types that decode them.

An API server prunes what a schema does not name, so a schema holds the types' fields *and* the
carried ones, which objects have and we never read (:mod:`mcm.api.crds.extras`). The manifests are
``apiextensions.k8s.io/v1``, structural, wire-compatible with the Go original's, and come out the
same, byte for byte, in every run.

* :func:`crd_manifests` returns them as JSON objects, new ones on each call.
* :func:`to_yaml` writes them as one YAML stream, ready for ``kubectl apply``.
"""

from __future__ import annotations

from mcm.api.crds.manifests import crd_manifest, crd_manifests, to_yaml
from mcm.api.crds.schema import root_schema

__all__ = ["crd_manifest", "crd_manifests", "root_schema", "to_yaml"]
