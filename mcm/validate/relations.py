"""What documents of one input say of one another: names that nothing bears, pools that overlap.

All of these are warnings: what is missing here may be in the cluster. So a class or secret is
missed only where others of its kind are among the documents.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from mcm.api.machine import Machine, MachineClass, MachineDeployment, MachineSet
from mcm.api.names import KIND_MACHINE_CLASS
from mcm.api.selectors import is_empty, matches
from mcm.api.templates import class_of, labels_of
from mcm.api.validation import FieldError
from mcm.validate.finding import Document, Finding

_SECRET: Final = "Secret"


def relations(documents: Sequence[Document], *, namespace: str) -> Iterator[Finding]:
    """Yield what is to be said of each; ``namespace`` is that of objects which name none."""
    yield from _twice(documents, namespace)
    yield from _without_class(documents, namespace)
    yield from _without_secret(documents, namespace)
    yield from _overlapping(documents, namespace)


def _warning(document: Document, field: str, detail: str, value: str) -> Finding:
    return Finding(
        document.place, FieldError(field, detail, value=value, is_warning=True), document
    )


def _twice(documents: Sequence[Document], namespace: str) -> Iterator[Finding]:
    first: dict[tuple[str, str], Document] = {}
    for document in documents:
        if not document.metadata.get("name"):
            continue
        same = first.setdefault((document.kind, document.key(namespace)), document)
        if same is not document:
            yield _warning(
                document, "metadata.name", f"is at {same.place}, too; the last wins", document.name
            )


def _without_class(documents: Sequence[Document], namespace: str) -> Iterator[Finding]:
    known = _keys_of(documents, KIND_MACHINE_CLASS, namespace)
    if not known:
        return
    for document in documents:
        named = _class_named_by(document)
        if named is None:
            continue
        field, kind, name = named
        if kind == KIND_MACHINE_CLASS and f"{document.namespace(namespace)}/{name}" not in known:
            yield _warning(document, field, "is no class of these files", name)


def _class_named_by(document: Document) -> tuple[str, str, str] | None:
    match document.obj:
        case Machine(spec=spec):
            return "spec.class.name", spec.class_.kind, spec.class_.name
        case MachineSet(spec=of_set):
            named = class_of(of_set.template)
        case MachineDeployment(spec=of_deployment):
            named = class_of(of_deployment.template)
        case _:
            return None
    return "spec.template.spec.class.name", named.kind, named.name


def _without_secret(documents: Sequence[Document], namespace: str) -> Iterator[Finding]:
    known = _keys_of(documents, _SECRET, namespace)
    if not known:
        return
    for document in documents:
        if not isinstance(document.obj, MachineClass):
            continue
        references = {
            "secretRef.name": document.obj.secret_ref,
            "credentialsSecretRef.name": document.obj.credentials_secret_ref,
        }
        for field, reference in references.items():
            if reference is None or not reference.name:
                continue
            place = reference.namespace or document.namespace(namespace)
            if f"{place}/{reference.name}" not in known:
                yield _warning(document, field, "is no secret of these files", reference.name)


def _keys_of(documents: Sequence[Document], kind: str, namespace: str) -> frozenset[str]:
    return frozenset(d.key(namespace) for d in documents if d.kind == kind and d.name)


def _overlapping(documents: Sequence[Document], namespace: str) -> Iterator[Finding]:
    """Deployments whose selector selects another one's machines would quarrel about them."""
    by_namespace: dict[str, list[tuple[Document, MachineDeployment]]] = defaultdict(list)
    for document in documents:
        if isinstance(document.obj, MachineDeployment):
            by_namespace[document.namespace(namespace)].append((document, document.obj))
    for pools in by_namespace.values():
        for document, pool in pools:
            if is_empty(pool.spec.selector):
                continue
            for other, its in pools:
                same = other.name == document.name
                if not same and matches(pool.spec.selector, labels_of(its.spec.template)):
                    detail = f"selects the machines of {other} ({other.place}), too"
                    yield _warning(document, "spec.selector", detail, document.name)
