"""When two templates are the same, and how sets made from them are named and labelled.

Two templates are one if machines made from the one need not be replaced for the other: what can be
changed in place (node template, configuration, class kind) does not count, and neither does the
label that tells sets apart. Only what the Go original knows is compared, since its sets lack what
it does not know, and taking over a fleet must not replace it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, final

import orjson

from mcm.api.machine import Machine, MachineSet, MachineTemplate
from mcm.api.meta import JSONObject
from mcm.api.names import LABEL_MACHINE_TEMPLATE_HASH
from mcm.api.templates import class_of, labels_of
from mcm.controllers.replicas.membership import is_terminating

_METADATA: Final = ("annotations", "finalizers", "generateName", "name", "namespace")
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_NAME_LETTERS: Final = 5
_LONGEST_NAME: Final = 253


def same_template(one: MachineTemplate, other: MachineTemplate) -> bool:
    """Tell whether machines of the one template serve for the other as well."""
    return identity_of(one) == identity_of(other)


def identity_of(template: MachineTemplate) -> JSONObject:
    """Return the part of a template that machines cannot change; absent and empty are the same."""
    class_ = class_of(template)
    identity: JSONObject = {
        name: template.metadata[name] for name in _METADATA if template.metadata.get(name)
    }
    labels = labels_of(template)
    labels.pop(LABEL_MACHINE_TEMPLATE_HASH, None)
    identity["labels"] = labels
    identity["class"] = {"name": class_.name, "apiGroup": class_.api_group}
    identity["providerID"] = template.spec.get("providerID") or ""
    return identity


def template_hash(template: MachineTemplate, collisions: int | None = None) -> str:
    """Return the value of the label ``machine-template-hash``: a decimal number of 32 bits.

    ``collisions`` (``status.collisionCount``) gives the same template another hash. FNV-1a over the
    identity as JSON with sorted keys: equal templates have equal hashes in any process.
    """
    return str(_fnv1a(_canonical(template, collisions)))


def set_name(deployment: str, template: MachineTemplate, collisions: int | None = None) -> str:
    """Return the one name that a deployment's set of this template can have.

    A second creation, by whomever, thus ends in AlreadyExists and not in a second set.
    """
    number, letters = _fnv1a(_canonical(template, collisions)), ""
    for _ in range(_NAME_LETTERS):
        number, digit = divmod(number, len(_LETTERS))
        letters += _LETTERS[digit]
    return f"{deployment[: _LONGEST_NAME - _NAME_LETTERS - 1]}-{letters}"


def _canonical(template: MachineTemplate, collisions: int | None) -> bytes:
    identity = identity_of(template)
    if collisions is not None:
        identity["collisions"] = collisions
    return orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)


def _fnv1a(data: bytes) -> int:
    value = _FNV_OFFSET
    for byte in data:
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value


# ---- the label of adopted sets -------------------------------------------------------------------
#
# A set that was made by hand selects by the deployment's labels alone, and so would select the
# machines of its siblings. In the order that never loses one of its machines: the template gets the
# label, so that new machines have it, then the machines, and last the selector. Each call says what
# is to be done now; nothing waits in between.


@final
@dataclass(frozen=True, slots=True)
class Labelling:
    """``machines`` get the label ``mark``; ``change`` is the next one of the set itself."""

    mark: str
    machines: tuple[Machine, ...] = ()
    change: JSONObject | None = None

    @property
    def of_a_machine(self) -> JSONObject:
        """The change that every one of ``machines`` needs."""
        return {"metadata": {"labels": {LABEL_MACHINE_TEMPLATE_HASH: self.mark}}}


def labelling(machine_set: MachineSet, machines: Iterable[Machine]) -> Labelling | None:
    """Return the next step; None if the set selects by the label already."""
    selector = machine_set.spec.selector
    if selector is None or LABEL_MACHINE_TEMPLATE_HASH in selector.match_labels:
        return None
    in_template = labels_of(machine_set.spec.template).get(LABEL_MACHINE_TEMPLATE_HASH)
    mark = in_template or template_hash(machine_set.spec.template)
    label = {LABEL_MACHINE_TEMPLATE_HASH: mark}
    if in_template is None:
        return Labelling(mark, change={"spec": {"template": {"metadata": {"labels": label}}}})
    unmarked = tuple(
        m
        for m in machines
        if not is_terminating(m) and m.metadata.labels.get(LABEL_MACHINE_TEMPLATE_HASH) != mark
    )
    if unmarked:
        return Labelling(mark, machines=unmarked)
    return Labelling(
        mark,
        change={"metadata": {"labels": label}, "spec": {"selector": {"matchLabels": label}}},
    )
