from __future__ import annotations

import pytest

from mcm.api.core import Taint, Toleration
from mcm.api.tolerations import tolerates, tolerates_everything


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration(key="gpu", value="yes", effect="NoSchedule"), True),
        (Toleration(key="gpu", value="yes"), True),
        (Toleration(key="gpu", value="no"), False),
        (Toleration(key="gpu", operator="Exists"), True),
        (Toleration(key="gpu", operator="Exists", effect="NoExecute"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(value="yes"), False),
        (Toleration(key="cpu", operator="Exists"), False),
    ],
)
def test_tolerations_match_by_key_value_and_effect(toleration: Toleration, tolerated: bool) -> None:
    gpu = Taint(key="gpu", value="yes", effect="NoSchedule")
    assert tolerates([toleration], gpu) is tolerated


@pytest.mark.parametrize(
    ("tolerations", "everything"),
    [
        ((), False),
        ((Toleration(operator="Exists"),), True),
        ((Toleration(operator="Exists", effect="NoSchedule"),), False),
        (
            (
                Toleration(operator="Exists", effect="NoSchedule"),
                Toleration(operator="Exists", effect="NoExecute"),
            ),
            True,
        ),
        ((Toleration(key="gpu", operator="Exists"),), False),
        ((Toleration(value="yes"),), False),
    ],
)
def test_only_keyless_tolerations_let_every_taint_pass(
    tolerations: tuple[Toleration, ...], *, everything: bool
) -> None:
    assert tolerates_everything(tolerations) is everything
