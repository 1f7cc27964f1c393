"""One run over all files: what there is, and what is to be said of it, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

from mcm.validate.document import judged
from mcm.validate.finding import Document, Finding, Place
from mcm.validate.inputs import found_in
from mcm.validate.provider_specs import SpecCheck, unchecked
from mcm.validate.relations import relations


@final
@dataclass(frozen=True, slots=True)
class Outcome:
    documents: Sequence[Document]
    findings: Sequence[Finding]

    def is_good(self, *, strict: bool) -> bool:
        """Tell whether there are objects, and no error (if ``strict``, no warning) in them."""
        failing = (f for f in self.findings if strict or f.is_error)
        return bool(self.documents) and not any(failing)


def validate_files(
    paths: Iterable[Path],
    *,
    namespace: str,
    max_replicas: int,
    recursive: bool = False,
    check: SpecCheck = unchecked,
) -> Outcome:
    """Look at all documents in ``paths``. Never raises for what stands in them."""
    documents: list[Document] = []
    findings: list[Finding] = []
    places: dict[Place, int] = {}
    for found in found_in(paths, recursive=recursive):
        places.setdefault(found.place, len(places))
        if isinstance(found, Finding):
            findings.append(found)
            continue
        document, said = judged(found, max_replicas=max_replicas, check=check)
        documents.append(document)
        findings += [Finding(document.place, each, document) for each in said]
    findings += relations(documents, namespace=namespace)
    findings.sort(key=lambda finding: places[finding.place])
    return Outcome(documents, findings)
