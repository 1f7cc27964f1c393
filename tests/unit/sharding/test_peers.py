"""What the leases of other shards tell."""

from __future__ import annotations

from mcm.api.core import Lease, LeaseSpec
from mcm.api.meta import ObjectMeta
from mcm.sharding.peers import Peers
from mcm.sharding.shard import Shard

BASE = "machine-controller-manager"


def lease(
    name: str, renewed: str, *, selector: str = "s=b", holder: str = "pod", of: str = BASE
) -> Lease:
    shard = Shard(name, selector)
    meta = ObjectMeta(name=f"{of}-{name}", annotations=dict(shard.lease_annotations))
    spec = LeaseSpec(holder_identity=holder, lease_duration_seconds=15, renew_time=renewed)
    return Lease(metadata=meta, spec=spec)


def names(shards: tuple[Shard, ...]) -> list[str]:
    return [shard.name for shard in shards]


def test_alive_is_whose_lease_was_seen_to_change_whatever_its_times_say() -> None:
    peers = Peers("a", base=BASE, period=10)
    peers.look([lease("b", "2099-01-01T00:00:00Z"), lease("a", "x")], now=0)
    assert names(peers.known) == ["b"] and peers.alive(0) == ()
    peers.look([lease("b", "1970-01-01T00:00:00Z")], now=10)
    assert names(peers.alive(10)) == names(peers.alive(35)) == ["b"]
    peers.look([lease("b", "1970-01-01T00:00:00Z")], now=36)
    assert peers.alive(36) == () and names(peers.known) == ["b"]


def test_who_released_its_lease_is_not_alive_and_who_has_none_is_forgotten() -> None:
    peers = Peers("a", base=BASE, period=10)
    peers.look([lease("b", "1")], now=0)
    peers.look([lease("b", "2")], now=10)
    peers.look([lease("b", "3", holder="")], now=20)
    assert peers.alive(20) == () and names(peers.known) == ["b"]
    peers.look([], now=30)
    assert peers.known == ()


def test_what_says_nothing_that_can_be_understood_is_no_shard() -> None:
    peers = Peers("a", base=BASE, period=10)
    plain = Lease(metadata=ObjectMeta(name=f"{BASE}-x"))
    odd = lease("b", "1", selector="s in (")
    peers.look([plain, odd, lease("c", "1", of="machine-controller")], now=0)
    assert peers.known == ()


def test_nobody_is_called_gone_before_it_was_looked_at_for_long_enough() -> None:
    peers = Peers("a", base=BASE, period=10)
    peers.look([lease("b", "1"), lease("c", "1", holder="")], now=100)
    assert names(peers.not_gone(100)) == names(peers.not_gone(125)) == ["b"]
    peers.look([lease("b", "1")], now=126)
    assert peers.not_gone(126) == ()
    peers.look([lease("b", "2")], now=136)
    assert names(peers.not_gone(136)) == ["b"]
