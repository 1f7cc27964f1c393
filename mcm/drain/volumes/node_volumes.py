"""The volumes of one Node: who holds which, what is attached here or elsewhere, who comes next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

from mcm.api.core import Node, PersistentVolume, PersistentVolumeClaim, Pod, VolumeAttachment
from mcm.drain.pods import is_finished
from mcm.drain.volumes.claims import ClaimUse, claimed_by, claims_of, is_usable_by
from mcm.drain.volumes.holding import Holding
from mcm.drain.volumes.identity import Identity, identity_of, is_name_for

_SHARED_MODES: Final = ("ReadWriteMany", "ReadOnlyMany")
_NO_IDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True)
class Unit:
    """Pods of a Node that share exclusive volumes, be it through others, can only go together.

    ``volumes`` and ``attachers`` are those of all of them.
    """

    volumes: frozenset[str] = frozenset()
    attachers: frozenset[str] = frozenset()


@final
class NodeVolumes:
    """What was true of a Node's volumes at one moment. ``stale`` says why that may have been long
    ago; empty: it is believed to be the present."""

    def __init__(
        self,
        node_name: str,
        *,
        here: Mapping[str, Pod],
        users: Mapping[str, Sequence[Pod]],
        claims: Mapping[str, PersistentVolumeClaim],
        volumes: Mapping[str, PersistentVolume],
        attachments: Mapping[str, Sequence[VolumeAttachment]],
        in_status: frozenset[str],
        ids: Mapping[str, tuple[str, ...]],
        stale: str,
    ) -> None:
        self.node_name = node_name
        self.stale = stale
        self._here = here
        self._users = users
        self._claims = claims
        self._volumes = volumes
        self._attachments = attachments
        self._in_status = in_status
        self._ids = ids
        self._holdings = {uid: self._found(pod) for uid, pod in here.items()}

    # ---- what pods hold --------------------------------------------------------------------------

    def holdings_of(self, pod: Pod) -> tuple[Holding, ...]:
        """Return all volumes the pod claims, and of each why it is tracked or is not."""
        found = self._holdings.get(pod.metadata.uid)
        return self._found(pod) if found is None else found

    def exclusive_of(self, pod: Pod) -> tuple[Holding, ...]:
        """Return the volumes for which the pod's departure is waited: exclusively attached here."""
        return tuple(holding for holding in self.holdings_of(pod) if holding.tracked)

    def units(self) -> tuple[Unit, ...]:
        """Return the pods of the Node that hold exclusive volumes, each as a unit of its own; who
        shares what, is for :class:`.lanes.Lanes` to find."""
        tracked = ([h for h in holdings if h.tracked] for holdings in self._holdings.values())
        return tuple(unit_of(holdings) for holdings in tracked if holdings)

    def left_behind(self) -> tuple[tuple[str, Holding], ...]:
        """Return what is exclusively attached to the Node and that no pod there uses, by the UID of
        its attachment: its pod is gone, and so will it be."""
        used = {
            holding.volume
            for uid, holdings in self._holdings.items()
            if self.is_here(uid)
            for holding in holdings
        }
        return tuple(
            (attachment.metadata.uid, holding)
            for name, attachments in self._attachments.items()
            for attachment in attachments
            if attachment.spec.node_name == self.node_name and name not in used
            if (holding := self._without_pod(name, attachment.spec.attacher)) is not None
        )

    # ---- where a volume is -----------------------------------------------------------------------

    def is_here(self, pod_uid: str) -> bool:
        """Tell whether the pod is on the Node and has not finished."""
        pod = self._here.get(pod_uid)
        return pod is not None and not is_finished(pod)

    def users_here(self, holding: Holding) -> tuple[Pod, ...]:
        """Return the pods of the Node that use the volume, and have not finished."""
        return tuple(
            self._here[uid]
            for uid, holdings in self._holdings.items()
            if any(h.volume == holding.volume for h in holdings) and self.is_here(uid)
        )

    def attached_here(self, holding: Holding) -> bool:
        """Tell whether any source says that the volume is attached to the Node, or is about to be.

        An attachment that is being deleted counts until it is gone.
        """
        return any(a.spec.node_name == self.node_name for a in self._attached(holding)) or (
            self._is_in_status(holding.volume, holding.names)
        )

    def attached_elsewhere(self, holding: Holding) -> str:
        """Return another Node that the volume is attached to; empty if there is none."""
        return next(
            (
                a.spec.node_name
                for a in self._attached(holding)
                if a.spec.node_name != self.node_name
                and a.status.attached
                and a.metadata.deletion_timestamp is None
            ),
            "",
        )

    def error_of(self, holding: Holding) -> str:
        """Return what the attacher says went wrong when it detached or attached the volume last."""
        for attachment in self._attached(holding):
            leaves = attachment.spec.node_name == self.node_name
            status = attachment.status
            error = status.detach_error if leaves else status.attach_error
            if error is not None:
                return error.message or "no reason given"
        return ""

    # ---- who comes next --------------------------------------------------------------------------

    def claim_of(self, holding: Holding) -> PersistentVolumeClaim | None:
        return self._claims.get(holding.claim)

    def volume_of(self, holding: Holding) -> PersistentVolume | None:
        return self._volumes.get(holding.volume)

    def users_of(self, holding: Holding) -> Sequence[Pod]:
        """Return the pods, wherever they are, that use the claim and have not finished."""
        return tuple(p for p in self._users.get(holding.claim, ()) if not is_finished(p))

    # ---- inside ----------------------------------------------------------------------------------

    def _attached(self, holding: Holding) -> Sequence[VolumeAttachment]:
        return self._attachments.get(holding.volume, ())

    def _is_in_status(self, volume: str, names: tuple[str, ...]) -> bool:
        if any(name in self._in_status for name in names):
            return True
        asked = self._ids.get(volume, ())
        return any(is_name_for(name, known) for known in asked for name in self._in_status)

    def _found(self, pod: Pod) -> tuple[Holding, ...]:
        return tuple(self._holding(pod, use) for use in claims_of(pod))

    def _holding(self, pod: Pod, use: ClaimUse) -> Holding:
        claim = self._claims.get(use.key)
        if claim is None:
            return _untracked(use, "its claim does not exist")
        if not is_usable_by(pod, use, claim):
            return _untracked(use, "the claim of that name is not the pod's own")
        if not claim.spec.volume_name:
            return _untracked(use, "its claim is not bound to a volume")
        return self._bound(pod, use, claim)

    def _bound(self, pod: Pod, use: ClaimUse, claim: PersistentVolumeClaim) -> Holding:
        name = claim.spec.volume_name
        volume = self._volumes.get(name)
        identity = identity_of(volume) if volume is not None else Identity()
        attacher = next(
            (a.spec.attacher for a in self._attachments.get(name, ()) if a.spec.attacher), ""
        )
        holding = Holding(
            claim=use.key,
            volume=name,
            attacher=attacher or identity.attacher or identity.kind,
            names=identity.names,
            ephemeral=use.ephemeral,
        )
        why = self._why_untracked(pod, holding, _modes(claim, volume))
        return holding if not why else _with_reason(holding, why)

    def _without_pod(self, name: str, attacher: str) -> Holding | None:
        """Return the volume as whoever used it held it; None if several Nodes may."""
        volume = self._volumes.get(name)
        claim_key = claimed_by(volume) if volume is not None else ""
        claim = self._claims.get(claim_key)
        if volume is None or not claim_key or _shared_by(_modes(claim, volume)):
            return None
        identity = identity_of(volume)
        return Holding(
            claim=claim_key,
            volume=name,
            attacher=attacher or identity.attacher or identity.kind,
            names=identity.names,
        )

    def _why_untracked(self, pod: Pod, holding: Holding, modes: Sequence[str]) -> str:
        if is_finished(pod):
            return "the pod has finished"
        if shared := _shared_by(modes):
            return f"the volume may be attached to several Nodes ({', '.join(shared)})"
        if not self.attached_here(holding):
            return "the volume is not attached to the Node"
        return ""


def node_volumes(
    node_name: str,
    node: Node | None,
    pods: Iterable[Pod],
    claims: Iterable[PersistentVolumeClaim],
    volumes: Iterable[PersistentVolume],
    attachments: Iterable[VolumeAttachment],
    *,
    ids: Mapping[str, tuple[str, ...]] = _NO_IDS,
    stale: str = "",
) -> NodeVolumes:
    """Put together what is known. ``pods``: those of the Node, and those elsewhere or nowhere that
    use the same claims. ``ids``: what the provider calls volumes, by the PersistentVolume's name.
    """
    users: dict[str, list[Pod]] = {}
    here: dict[str, Pod] = {}
    for pod in pods:
        if pod.spec.node_name == node_name:
            here[pod.metadata.uid] = pod
        for use in claims_of(pod):
            users.setdefault(use.key, []).append(pod)
    by_volume: dict[str, list[VolumeAttachment]] = {}
    for attachment in attachments:
        if name := attachment.spec.source.persistent_volume_name:
            by_volume.setdefault(name, []).append(attachment)
    return NodeVolumes(
        node_name,
        here=here,
        users=users,
        claims={claim.metadata.key: claim for claim in claims},
        volumes={volume.metadata.name: volume for volume in volumes},
        attachments=by_volume,
        in_status=names_in_status(node),
        ids=ids,
        stale=stale,
    )


def names_in_status(node: Node | None) -> frozenset[str]:
    """Return the unique names of all volumes that the Node's status speaks of."""
    if node is None:
        return frozenset()
    attached = (volume.name for volume in node.status.volumes_attached)
    return frozenset((*attached, *node.status.volumes_in_use))


def unit_of(holdings: Iterable[Holding]) -> Unit:
    volumes, attachers = set(), set()
    for holding in holdings:
        volumes.add(holding.volume)
        attachers.add(holding.attacher)
    return Unit(frozenset(volumes), frozenset(attachers))


def is_shareable(volume: PersistentVolume | None) -> bool:
    """Tell whether several Nodes may have the volume, so that nobody waits until one lets it go. Of
    one that is not known, that is not known either."""
    return bool(_shared_by(_modes(None, volume)))


def _shared_by(modes: Sequence[str]) -> Sequence[str]:
    return [mode for mode in _SHARED_MODES if mode in modes]


def _modes(claim: PersistentVolumeClaim | None, volume: PersistentVolume | None) -> Sequence[str]:
    modes = volume.spec.get("accessModes") if volume is not None else None
    if isinstance(modes, list) and modes:
        return tuple(mode for mode in modes if isinstance(mode, str))
    return claim.spec.access_modes if claim is not None else ()


def _untracked(use: ClaimUse, why: str) -> Holding:
    return Holding(claim=use.key, ephemeral=use.ephemeral, untracked=why)


def _with_reason(holding: Holding, why: str) -> Holding:
    return Holding(
        claim=holding.claim,
        volume=holding.volume,
        attacher=holding.attacher,
        names=holding.names,
        ephemeral=holding.ephemeral,
        untracked=why,
    )
