"""Pods that are not restarted for ever end by themselves, as those of `helm test`."""

from __future__ import annotations

import pytest

from mcm.providers.simulated.pods import ANNOTATION_COMPLETION, ANNOTATION_EXIT_CODE
from tests.unit.world.manifests import pod
from tests.unit.world.rig import Rig, at, conditions, objects, on_rig


def _phase(rig: Rig, name: str = "p") -> str:
    return str(at(rig.get("pods", name), "status", "phase"))


async def _run(rig: Rig, policy: str, **annotations: str) -> None:
    await rig.boot("a")
    await rig.until(lambda: rig.ready("a"))
    manifest = pod("p", nodeName="a", restartPolicy=policy)
    manifest["metadata"] = {"name": "p", "namespace": "default", "annotations": annotations}
    await rig.create(manifest)
    await rig.until(lambda: _phase(rig) == "Running")


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_a_pod_that_is_not_restarted_succeeds_after_a_moment(policy: str) -> None:
    async def scenario(rig: Rig) -> None:
        await _run(rig, policy)
        assert await rig.until(lambda: _phase(rig) == "Succeeded") == pytest.approx(1, abs=0.1)
        done = rig.get("pods", "p")
        ended = at(objects(done, "status", "containerStatuses")[0], "state", "terminated")
        assert (at(ended, "exitCode"), at(ended, "reason")) == (0, "Completed")
        assert str(at(ended, "startedAt")) < str(at(ended, "finishedAt"))
        assert conditions(done)["Ready"]["status"] == "False"
        assert conditions(done)["Ready"]["reason"] == "PodCompleted"

    on_rig(scenario)


def test_a_pod_says_how_long_it_takes_and_that_it_fails() -> None:
    async def scenario(rig: Rig) -> None:
        await _run(rig, "Never", **{ANNOTATION_COMPLETION: "7.5", ANNOTATION_EXIT_CODE: "3"})
        assert await rig.until(lambda: _phase(rig) != "Running") == pytest.approx(7.5, abs=0.1)
        done = rig.get("pods", "p")
        ended = at(objects(done, "status", "containerStatuses")[0], "state", "terminated")
        assert (_phase(rig), at(ended, "exitCode"), at(ended, "reason")) == ("Failed", 3, "Error")

    on_rig(scenario)


@pytest.mark.parametrize(
    ("policy", "annotations"),
    [
        ("Always", {}),
        ("Always", {ANNOTATION_COMPLETION: "1"}),
        ("OnFailure", {ANNOTATION_EXIT_CODE: "1"}),
    ],
)
def test_a_pod_that_is_restarted_runs_on(policy: str, annotations: dict[str, str]) -> None:
    async def scenario(rig: Rig) -> None:
        await _run(rig, policy, **annotations)
        await rig.pass_time(60)
        assert _phase(rig) == "Running"

    on_rig(scenario)


def test_a_pod_that_has_ended_stays_so_and_nobody_writes_about_it() -> None:
    async def scenario(rig: Rig) -> None:
        await _run(rig, "Never")
        await rig.until(lambda: _phase(rig) == "Succeeded")
        await rig.pass_time(5)
        rig.server.requests.reset()
        await rig.pass_time(60)
        assert not any("pods" in what for what in rig.steady_writes())
        assert _phase(rig) == "Succeeded"

    on_rig(scenario)
