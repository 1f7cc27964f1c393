"""Rules on GetVolumeIDs, by which a drain knows which volumes to wait for."""

from __future__ import annotations

from mcm.api.meta import JSONObject
from mcm.conformance.lab import Lab, unimplemented
from mcm.conformance.rule import NotApplicable, Violation, rule
from mcm.driver import Code, DriverError, GetVolumeIDsRequest

_UNKNOWN: tuple[JSONObject, ...] = (
    {"nfs": {"server": "10.0.0.1", "path": "/"}},
    {"csi": {"driver": "foreign.example.com", "volumeHandle": ""}},
    {},
)


@rule
async def no_volume_has_no_id(lab: Lab) -> None:
    """GetVolumeIDs answers nothing to nothing."""
    if ids := await _ids(lab, GetVolumeIDsRequest(())):
        raise Violation(f"it answered {ids}")


@rule
async def volumes_that_it_does_not_know_are_left_out(lab: Lab) -> None:
    """GetVolumeIDs leaves out a volume that it cannot tell the ID of; it does not fail."""
    if any(not volume_id for volume_id in await _ids(lab, GetVolumeIDsRequest(_UNKNOWN))):
        raise Violation("it answered with an empty ID")


@rule
async def a_volume_has_its_id(lab: Lab) -> None:
    """GetVolumeIDs answers with IDs as they stand in a Node's ``status.volumesAttached``."""
    volumes = lab.subject.volumes
    if not volumes:
        raise NotApplicable("the subject names no volumes")
    found = await _ids(lab, GetVolumeIDsRequest(tuple(volumes.values())))
    if sorted(found) != sorted(volumes):
        raise Violation(f"it answered {sorted(found)}, not {sorted(volumes)}")


async def _ids(lab: Lab, request: GetVolumeIDsRequest) -> tuple[str, ...]:
    try:
        return await lab.volume_ids(request)
    except DriverError as error:
        if error.code is Code.UNIMPLEMENTED:
            raise unimplemented("GetVolumeIDs") from error
        raise
