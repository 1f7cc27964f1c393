"""The revisions of a deployment: a row for each set, and what differs between two templates."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import final

import yaml

from mcm.api.machine import MachineSet, MachineTemplate
from mcm.api.meta import JSONObject
from mcm.api.names import ANNOTATION_CHANGE_CAUSE, LABEL_MACHINE_TEMPLATE_HASH
from mcm.api.templates import class_of, without_label
from mcm.controllers.deployment.fleet import DeploymentSnapshot
from mcm.controllers.deployment.revisions.numbers import revision_of
from mcm.rollout.changes import earlier_revisions


@final
@dataclass(frozen=True, slots=True)
class Revision:
    """One set: ``earlier`` are the revisions that it bore before, ``present`` says that the
    deployment's template is its own. ``age`` is in seconds, None if unknown."""

    number: int
    set: MachineSet
    machines: int
    earlier: tuple[str, ...]
    present: bool
    age: float | None

    @property
    def cause(self) -> str:
        return self.set.metadata.annotations.get(ANNOTATION_CHANGE_CAUSE, "")

    @property
    def class_name(self) -> str:
        return class_of(self.set.spec.template).name


def revisions(snapshot: DeploymentSnapshot, now: datetime) -> Sequence[Revision]:
    """Return the revisions, the oldest first; sets without one (which is rare) are left out."""
    found = []
    for machine_set in snapshot.sets:
        number = revision_of(machine_set.metadata.annotations)
        if number is None:
            continue
        created = machine_set.metadata.creation_timestamp
        found.append(
            Revision(
                number,
                machine_set,
                machines=len(snapshot.machines[machine_set.metadata.uid]),
                earlier=earlier_revisions(machine_set),
                present=machine_set is snapshot.new,
                age=(now - created).total_seconds() if created else None,
            )
        )
    return sorted(found, key=lambda r: (r.number, r.set.metadata.name))


def as_json(revision: Revision, *, template: bool) -> JSONObject:
    """Return what ``-o json`` shows of a revision, with its ``template`` or without."""
    created = revision.set.metadata.creation_timestamp
    shown: JSONObject = {
        "revision": revision.number,
        "earlierRevisions": [int(e) if e.isdigit() else e for e in revision.earlier],
        "machineSet": revision.set.metadata.name,
        "machineClass": revision.class_name,
        "machines": revision.machines,
        "present": revision.present,
        "creationTimestamp": created.isoformat().replace("+00:00", "Z") if created else None,
        "changeCause": revision.cause or None,
    }
    if template:
        shown["template"] = _bare(revision.set.spec.template)
    return shown


def template_text(template: MachineTemplate) -> str:
    """Return a template as people read it, without the label that tells sets apart."""
    return str(yaml.safe_dump(_bare(template), sort_keys=True, default_flow_style=False))


def _bare(template: MachineTemplate) -> JSONObject:
    bare = without_label(template, LABEL_MACHINE_TEMPLATE_HASH)
    metadata = {k: v for k, v in bare.metadata.items() if v not in (None, {}, [])}
    return {"metadata": metadata, "spec": dict(bare.spec)}


def difference(
    before: MachineTemplate, after: MachineTemplate, *, names: tuple[str, str]
) -> Sequence[str]:
    """Return the lines of a unified difference; none if the templates say the same."""
    one, other = template_text(before).splitlines(), template_text(after).splitlines()
    return list(difflib.unified_diff(one, other, *names, lineterm=""))


def human_age(seconds: float | None) -> str:
    """Write a span as kubectl does in its columns: ``45s``, ``5m12s``, ``3h20m``, ``9d``."""
    if seconds is None:
        return "<unknown>"
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    minutes, rest = divmod(whole, 60)
    if minutes < 10:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours, rest = divmod(minutes, 60)
    if hours < 8:
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days, rest = divmod(hours, 24)
    if days < 8:
        return f"{days}d{rest}h" if rest else f"{days}d"
    return f"{days}d"
