"""Which part of a namespace's fleet this process looks after, and who its neighbours are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from mcm.api.selectors import is_empty, parse_label_selector
from mcm.sharding.shard import Shard, is_shard_name


@final
@dataclass(frozen=True, slots=True)
class Sharding:
    """``name`` is empty where there are no shards."""

    name: str = ""
    selector: str = ""

    @property
    def shard(self) -> Shard | None:
        return Shard(self.name, self.selector) if self.name else None

    def validate(self) -> list[str]:
        problems = []
        if self.name and not is_shard_name(self.name):
            problems.append(
                f"--shard-name: {self.name!r} can be no shard's (at most 30 lower case letters, "
                "digits and hyphens; shared-duties, manager and manager-… name other leases)"
            )
        if self.selector and not self.name:
            problems.append("--shard-name: required with --shard-selector")
        if self.name and not self.selector:
            problems.append("--shard-selector: required with --shard-name")
        try:
            empty = is_empty(parse_label_selector(self.selector))
        except ValueError as error:
            problems.append(f"--shard-selector: {error}")
        else:
            if self.selector and empty:
                problems.append("--shard-selector: selects everything")
        return problems
