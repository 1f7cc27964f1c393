"""What a shard is: a name, a selector, and how both are told to others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, final

from mcm.api.meta import LabelSelector, ObjectMeta
from mcm.api.names import ANNOTATION_SHARD, ANNOTATION_SHARD_SELECTOR
from mcm.api.selectors import matches, parse_label_selector

MARK: Final = ANNOTATION_SHARD
"""On a Machine, MachineSet or MachineDeployment: the shard that looks after it."""

JOINT_IDENTITY: Final = "mcm-shards"
"""Under this name all shards together hold the leases of unsharded managers."""

SHARED_DUTIES: Final = "machine-controller-shared-duties"
"""The lease of the shard that does what cannot be divided."""

_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?", re.ASCII)
_OF_OTHER_LEASES: Final = re.compile(r"shared-duties|manager(-.*)?", re.ASCII)
"""Behind ``machine-controller-`` these make the name of a lease that is somebody else's."""


def is_shard_name(text: str) -> bool:
    """Tell whether a shard may be named so: it becomes part of a lease's name."""
    return _NAME.fullmatch(text) is not None and not _OF_OTHER_LEASES.fullmatch(text)


@final
@dataclass(frozen=True)
class Shard:
    """``selector`` is in kubectl's form. Raises ValueError (when first asked) if it has none."""

    name: str
    selector: str

    @cached_property
    def _parsed(self) -> LabelSelector:
        return parse_label_selector(self.selector)

    def selects(self, labels: Mapping[str, str]) -> bool:
        return matches(self._parsed, labels)

    def lease(self, base: str) -> str:
        """Return the name of the shard's own lease beside ``base``."""
        return f"{base}-{self.name}"

    @property
    def lease_annotations(self) -> Mapping[str, str]:
        """What its leases say of it."""
        return {ANNOTATION_SHARD: self.name, ANNOTATION_SHARD_SELECTOR: self.selector}


def holder_of(meta: ObjectMeta) -> str:
    """Return the shard that looks after an object; empty: none yet."""
    return meta.annotations.get(MARK, "")
