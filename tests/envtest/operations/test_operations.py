"""What the operations chapters have people do with kubectl, on the sandbox and on a real server.

All scenarios of a server are played at once, each with a deployment of its own; a test is what one
of them found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from tests.envtest import assets
from tests.envtest.operations import servers
from tests.envtest.operations.person import Person
from tests.envtest.operations.scenarios import (
    failing,
    freezing,
    healing,
    in_place,
    scaling,
    updating,
)
from tests.integration.kubectl import find_kubectl

pytestmark = pytest.mark.timeout(900)

SCENARIOS: tuple[Callable[[Person], None], ...] = (
    in_place.a_manual_update_in_place_waits_to_be_told,
    in_place.an_automatic_update_in_place_keeps_the_machines,
    updating.rollback_to_finds_earlier_templates,
    updating.an_edit_of_class_and_labels_replaces_all_machines,
    updating.a_paused_deployment_scales_and_updates_later,
    updating.the_history_keeps_as_many_sets_as_asked_for,
    healing.a_failed_machine_is_kept_for_whoever_wants_to_look,
    healing.orphans_are_adopted_and_none_is_made_twice,
    failing.a_broken_class_stops_the_update_and_says_why,
    failing.a_broken_class_is_mended_and_the_update_goes_on,
    failing.a_failing_update_is_rolled_back_where_that_is_asked_for,
    freezing.surplus_machines_freeze_a_set_until_few_are_left,
    freezing.a_person_lifts_a_freeze,
    freezing.a_freeze_set_by_hand_is_no_switch,
    scaling.numbers_are_shown_from_the_first_moment,
    scaling.sizes_that_cannot_be_meant_are_refused_in_words,
    scaling.a_machine_counts_after_min_ready_seconds,
)
_AT_ONCE = 5


@pytest.fixture(scope="module", params=["sandbox", pytest.param("real", marks=pytest.mark.envtest)])
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Future[None]]]:
    """Begin all scenarios that somebody will ask for; what they end with, by name."""
    binary = _kubectl()
    folder = tmp_path_factory.mktemp(f"operations-{request.param}")
    with ExitStack() as stack:
        if request.param == "real":
            plane = request.getfixturevalue("control_plane")
            server = stack.enter_context(servers.real(folder, binary, plane))
        else:
            server = stack.enter_context(servers.sandbox(folder, binary))
        server.kubectl("create", "secret", "generic", "cloud", "--from-literal=userData=none")
        pool = stack.enter_context(ThreadPoolExecutor(_AT_ONCE))
        wanted = [item.name for item in request.session.items]
        yield {
            scenario.__name__: pool.submit(_play, scenario, Person(server, f"pool-{n}"))
            for n, scenario in enumerate(SCENARIOS)
            if any(scenario.__name__ in name for name in wanted)
        }
        assert "Traceback" not in server.manager.log.read_text()


@pytest.mark.kubectl
@pytest.mark.parametrize("scenario", [scenario.__name__ for scenario in SCENARIOS])
def test_a_person_sees_that(scenario: str, played: Mapping[str, Future[None]]) -> None:
    played[scenario].result()


def _play(scenario: Callable[[Person], None], person: Person) -> None:
    try:
        scenario(person)
    except BaseException as error:
        error.add_note(person.told())
        raise


def _kubectl() -> str:
    binary = find_kubectl()
    if binary is not None:
        return binary
    try:
        return str(assets.locate() / "kubectl")
    except assets.AssetsMissing as error:
        pytest.skip(str(error))
