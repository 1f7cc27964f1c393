"""What is measured of a shard; all series have few values each, whatever the fleet.

* ``mcm_shard_info`` (gauge, labels ``shard``, ``selector``): constant 1
* ``mcm_shard_objects`` (gauge, label ``state``): Machines, MachineSets and MachineDeployments that
  are ``held`` by this shard, or ``awaited``: belong to it, and are another's yet
* ``mcm_shard_misplaced_objects`` (gauge, label ``reason``): told by the shard that has the shared
  duties, 0 by the others. ``outside``: no shard's selector matches; ``contested``: several do;
  ``abandoned``: marked with a shard that is not alive
* ``mcm_shard_shared_duties`` (gauge): 1 while this shard has them
* ``mcm_shard_hand_overs_total`` (counter): objects given to another shard
"""

from __future__ import annotations

from typing import Final, final

from prometheus_client import CollectorRegistry, Counter, Gauge

OUTSIDE: Final = "outside"
CONTESTED: Final = "contested"
ABANDONED: Final = "abandoned"


@final
class ShardMetrics:
    """The families. Make one per registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.info = Gauge(
            "mcm_shard_info", "Constant 1; the labels describe the shard.", ("shard", "selector"),
            registry=registry,
        )  # fmt: skip
        self.objects = Gauge(
            "mcm_shard_objects",
            "Objects that this shard looks after (held), or that belong to it and are another's.",
            ("state",),
            registry=registry,
        )
        self.misplaced = Gauge(
            "mcm_shard_misplaced_objects",
            "Objects that no shard matches, that several do, or whose shard is not alive.",
            ("reason",),
            registry=registry,
        )
        self.shared_duties = Gauge(
            "mcm_shard_shared_duties",
            "1 while this shard does what shards cannot divide, else 0.",
            registry=registry,
        )
        self.hand_overs = Counter(
            "mcm_shard_hand_overs", "Objects given to another shard.", registry=registry
        )
        for state in ("held", "awaited"):
            self.objects.labels(state).set(0)
        for reason in (OUTSIDE, CONTESTED, ABANDONED):
            self.misplaced.labels(reason).set(0)
