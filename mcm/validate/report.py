"""Writes findings, one a line, or as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import orjson

from mcm.api.meta import JSONObject
from mcm.validate.finding import Document, Finding


def as_text(findings: Iterable[Finding]) -> str:
    """``file:number kind/name: error: field: problem``; a file that cannot be read has no kind."""
    return "".join(f"{_line(finding)}\n" for finding in findings)


def as_json(findings: Iterable[Finding]) -> str:
    return orjson.dumps([_entry(f) for f in findings], option=orjson.OPT_INDENT_2).decode() + "\n"


def summary(documents: Sequence[Document], findings: Sequence[Finding]) -> str:
    """Say how much was looked at, what was not, and what came of it."""
    errors = sum(finding.is_error for finding in findings)
    others = Counter(d.kind or "object without kind" for d in documents if d.obj is None)
    looked_at = len(documents) - others.total()
    text = f"{_counted(looked_at, 'object')} looked at: {_counted(errors, 'error')}, "
    text += _counted(len(findings) - errors, "warning")
    if others:
        text += (
            f"; not looked into: {', '.join(f'{n} {kind}' for kind, n in sorted(others.items()))}"
        )
    return f"{text}\n"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _line(finding: Finding) -> str:
    head = f"{finding.place} {finding.document}" if finding.document else str(finding.place)
    said = finding.said
    what = str(said) if said.field else said.detail
    return f"{head}: {'error' if finding.is_error else 'warning'}: {what}"


def _entry(finding: Finding) -> JSONObject:
    document = finding.document
    return {
        "file": finding.place.file,
        "document": finding.place.number,
        "kind": document.kind if document else "",
        "name": document.name if document else "",
        "severity": "error" if finding.is_error else "warning",
        "field": finding.said.field,
        "problem": finding.said.complaint if finding.said.field else finding.said.detail,
    }
