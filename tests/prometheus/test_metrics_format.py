"""promtool has nothing against what is shown, but for names that the Go original chose."""

from __future__ import annotations

from collections.abc import Callable

from mcm.sandbox import samples
from mcm.simulation.harness import Simulation
from mcm.simulation.virtualtime import run_virtual
from tests.metrics.exposition import complete, shown

_NO_TOTAL = 'non-counter metrics should not have "_total" suffix'
_CAMEL = "label names should be written in 'snake_case' not 'camelCase'"
COMPLAINTS_OF_GO_NAMES = {
    f"mcm_machine_items_total {_NO_TOTAL}",
    f"mcm_machine_set_items_total {_NO_TOTAL}",
    f"mcm_machine_deployment_items_total {_NO_TOTAL}",
    f"mcm_machine_info {_CAMEL}",
    f"mcm_machine_set_info {_CAMEL}",
    f"mcm_machine_deployment_info {_CAMEL}",
    'mcm_machine_num_failed_join counter metrics should have "_total" suffix',
}
"""``createdAt``, gauges that end as counters do, and the reverse: dashboards know them so."""


def test_promtool_complains_of_nothing_but_go_names(
    promtool: Callable[..., tuple[int, str]],
) -> None:
    texts: list[bytes] = []

    async def main() -> None:
        async with Simulation(seed=3) as sim:
            complete(sim)
            await sim.apply(samples.load())
            await sim.until(lambda: sim.running() == 3, within=120)
            texts.append(b"".join((await shown(sim)).pieces))

    run_virtual(main)
    code, said = promtool("check", "metrics", given=texts[0])
    assert set(said.splitlines()) == COMPLAINTS_OF_GO_NAMES
    assert code == 3  # of lint, not 1: it could be read
