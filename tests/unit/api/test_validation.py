from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.api.machine import (
    ClassSpec,
    DeploymentStrategy,
    InPlaceUpdate,
    Machine,
    MachineClass,
    MachineClassNodeTemplate,
    MachineDeployment,
    MachineDeploymentSpec,
    MachineSet,
    MachineSetSpec,
    MachineSpec,
    MachineTemplate,
    RollbackConfig,
    RollingUpdate,
)
from mcm.api.meta import JSONObject, LabelSelector, LabelSelectorRequirement, ObjectMeta
from mcm.api.validation import (
    ErrorKind,
    FieldError,
    describe,
    examine,
    validate_machine,
    validate_machine_class,
    validate_machine_deployment,
    validate_machine_set,
)

META = ObjectMeta(name="demo", namespace="default")
CLASS = ClassSpec(kind="MachineClass", name="class-a")
SELECTOR = LabelSelector(match_labels={"name": "demo"})
TEMPLATE = MachineTemplate(
    metadata={"labels": {"name": "demo", "x": "1"}},
    spec={"class": {"kind": "MachineClass", "name": "class-a"}},
)
CAPACITY: dict[str, str | int] = {"cpu": 4, "gpu": "0", "memory": "16Gi"}


def _machine(**spec: object) -> Machine:
    return Machine(metadata=META, spec=msgspec.structs.replace(MachineSpec(class_=CLASS), **spec))


def _set(**spec: object) -> MachineSet:
    good = MachineSetSpec(replicas=3, selector=SELECTOR, template=TEMPLATE)
    return MachineSet(metadata=META, spec=msgspec.structs.replace(good, **spec))


def _deployment(**spec: object) -> MachineDeployment:
    good = MachineDeploymentSpec(replicas=3, selector=SELECTOR, template=TEMPLATE)
    return MachineDeployment(metadata=META, spec=msgspec.structs.replace(good, **spec))


def _class(**template: object) -> MachineClass:
    good = MachineClassNodeTemplate(
        capacity=CAPACITY, instance_type="small", region="r1", zone="z1"
    )
    return MachineClass(metadata=META, node_template=msgspec.structs.replace(good, **template))


def _rolling(surge: int | str | None, unavailable: int | str | None) -> DeploymentStrategy:
    block = RollingUpdate(max_surge=surge, max_unavailable=unavailable)
    return DeploymentStrategy(type="RollingUpdate", rolling_update=block)


def _in_place(orchestration: str = "Auto") -> DeploymentStrategy:
    block = InPlaceUpdate(max_surge=0, max_unavailable=1, orchestration_type=orchestration)
    return DeploymentStrategy(type="InPlaceUpdate", in_place_update=block)


def _found(errors: tuple[FieldError, ...]) -> list[tuple[str, str]]:
    return [(error.field, error.kind.value) for error in errors]


# Machines -----------------------------------------------------------------------------------------


def test_a_good_machine_has_no_faults() -> None:
    assert validate_machine(_machine()) == ()
    assert (
        validate_machine(_machine(drain_timeout="2h0m0s", health_timeout="0s", max_evict_retries=0))
        == ()
    )


def test_an_empty_machine_lacks_both_parts_of_its_class() -> None:
    assert validate_machine(Machine(metadata=META)) == (
        FieldError("spec.class.kind", "Kind is required", ErrorKind.REQUIRED),
        FieldError("spec.class.name", "Name is required", ErrorKind.REQUIRED),
    )


@pytest.mark.parametrize(
    ("attribute", "name"),
    [
        ("drain_timeout", "drainTimeout"),
        ("health_timeout", "healthTimeout"),
        ("creation_timeout", "creationTimeout"),
        ("in_place_update_timeout", "inPlaceUpdateTimeout"),
        ("machine_preserve_timeout", "machinePreserveTimeout"),
    ],
)
@pytest.mark.parametrize("text", ["", "10", "10 minutes", "-1m"])
def test_a_timeout_that_is_none_is_named(attribute: str, name: str, text: str) -> None:
    assert _found(validate_machine(_machine(**{attribute: text}))) == [(f"spec.{name}", "Invalid")]
    template = MachineTemplate(metadata=TEMPLATE.metadata, spec={**TEMPLATE.spec, name: text})
    assert _found(validate_machine_set(_set(template=template))) == [
        (f"spec.template.spec.{name}", "Invalid")
    ]


def test_negative_eviction_retries_are_refused() -> None:
    assert _found(validate_machine(_machine(max_evict_retries=-1))) == [
        ("spec.maxEvictRetries", "Invalid")
    ]


# Sets and deployments -----------------------------------------------------------------------------


def test_a_good_set_and_a_good_deployment_have_no_faults() -> None:
    assert validate_machine_set(_set()) == ()
    assert validate_machine_deployment(_deployment()) == ()


@pytest.mark.parametrize(
    ("spec", "faults"),
    [
        ({"replicas": -1}, [("spec.replicas", "Invalid")]),
        ({"min_ready_seconds": -1}, [("spec.minReadySeconds", "Invalid")]),
        (
            {"auto_preserve_failed_machine_max": -1},
            [("spec.autoPreserveFailedMachineMax", "Invalid")],
        ),
        ({"selector": None}, [("spec.selector", "Required")]),
        (
            {"selector": LabelSelector(match_labels={"name": "other", "x": "1", "y": ""})},
            [
                ("spec.selector.matchLabels[name]", "Invalid"),
                ("spec.selector.matchLabels[y]", "Invalid"),
            ],
        ),
        (
            {
                "selector": LabelSelector(
                    match_expressions=(
                        LabelSelectorRequirement(key="name", operator="Exists"),
                        LabelSelectorRequirement(key="name", operator="DoesNotExist"),
                        LabelSelectorRequirement(key="name", operator="In"),
                        LabelSelectorRequirement(key="name", operator="Like", values=("d",)),
                    )
                )
            },
            [
                ("spec.selector.matchExpressions[1]", "Invalid"),
                ("spec.selector.matchExpressions[2]", "Invalid"),
                ("spec.selector.matchExpressions[3]", "Invalid"),
            ],
        ),
        (
            {"template": MachineTemplate(metadata=TEMPLATE.metadata)},
            [
                ("spec.template.spec.class.kind", "Required"),
                ("spec.template.spec.class.name", "Required"),
            ],
        ),
        (
            {"template": MachineTemplate(metadata=TEMPLATE.metadata, spec={"class": "x"})},
            [("spec.template.spec.class", "Invalid")],
        ),
        (
            {
                "template": MachineTemplate(
                    metadata={
                        "labels": {"name": "demo", "n": 1, "-k": "x", "v": "a b"},
                        "annotations": ["x"],
                    },
                    spec=TEMPLATE.spec,
                )
            },
            [
                ("spec.template.metadata.labels[n]", "Invalid"),
                ("spec.template.metadata.labels[-k]", "Invalid"),
                ("spec.template.metadata.labels[v]", "Invalid"),
                ("spec.template.metadata.annotations", "Invalid"),
            ],
        ),
    ],
)
def test_a_fault_of_a_set_or_a_deployment_is_named(
    spec: dict[str, object], faults: list[tuple[str, str]]
) -> None:
    assert _found(validate_machine_set(_set(**spec))) == faults
    assert _found(validate_machine_deployment(_deployment(**spec))) == faults


def test_an_empty_selector_is_a_deployments_error_and_a_sets_warning() -> None:
    everything = LabelSelector()
    assert _found(validate_machine_deployment(_deployment(selector=everything))) == [
        ("spec.selector", "Invalid")
    ]
    assert validate_machine_set(_set(selector=everything)) == ()
    (found,) = examine(_set(selector=everything))
    assert found.is_warning and found.field == "spec.selector"


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"revision_history_limit": -1}, "spec.revisionHistoryLimit"),
        ({"progress_deadline_seconds": -1}, "spec.progressDeadlineSeconds"),
        ({"rollback_to": RollbackConfig(revision=-1)}, "spec.rollbackTo.revision"),
    ],
)
def test_negative_numbers_of_a_deployment_are_refused(spec: dict[str, object], field: str) -> None:
    assert _found(validate_machine_deployment(_deployment(**spec))) == [(field, "Invalid")]


@pytest.mark.parametrize(
    "strategy",
    [
        DeploymentStrategy(),
        DeploymentStrategy(type="RollingUpdate"),
        DeploymentStrategy(type="Recreate"),
        _rolling(1, 0),
        _rolling("25%", "100%"),
        _rolling(0, 0),
        _rolling("0%", 0),
        _in_place("Auto"),
        _in_place("Manual"),
    ],
)
def test_these_strategies_are_good(strategy: DeploymentStrategy) -> None:
    assert validate_machine_deployment(_deployment(strategy=strategy)) == ()


_ROLLING = "spec.strategy.rollingUpdate"
_IN_PLACE = "spec.strategy.inPlaceUpdate"


@pytest.mark.parametrize(
    ("strategy", "faults"),
    [
        (DeploymentStrategy(type="Foo"), [("spec.strategy.type", "Invalid")]),
        (DeploymentStrategy(type="rollingUpdate"), [("spec.strategy.type", "Invalid")]),
        (DeploymentStrategy(type="InPlaceUpdate"), [(_IN_PLACE, "Required")]),
        (
            DeploymentStrategy(type="InPlaceUpdate", in_place_update=InPlaceUpdate()),
            [
                (f"{_IN_PLACE}.maxUnavailable", "Required"),
                (f"{_IN_PLACE}.maxSurge", "Required"),
                (f"{_IN_PLACE}.orchestrationType", "Invalid"),
            ],
        ),
        (_in_place("auto"), [(f"{_IN_PLACE}.orchestrationType", "Invalid")]),
        (_rolling(1, None), [(f"{_ROLLING}.maxUnavailable", "Required")]),
        (
            _rolling(-1, "x"),
            [(f"{_ROLLING}.{n}", "Invalid") for n in ("maxUnavailable", "maxSurge")],
        ),
        (_rolling("5", 1), [(f"{_ROLLING}.maxSurge", "Invalid")]),
        (_rolling("-5%", 1), [(f"{_ROLLING}.maxSurge", "Invalid")]),
        (_rolling("1.5%", 1), [(f"{_ROLLING}.maxSurge", "Invalid")]),
        (_rolling("%", 1), [(f"{_ROLLING}.maxSurge", "Invalid")]),
        (_rolling(2**31, 1), [(f"{_ROLLING}.maxSurge", "Invalid")]),
        (_rolling("99999999999%", 1), [(f"{_ROLLING}.maxSurge", "Invalid")]),
    ],
)
def test_a_fault_of_the_strategy_is_named(
    strategy: DeploymentStrategy, faults: list[tuple[str, str]]
) -> None:
    assert _found(validate_machine_deployment(_deployment(strategy=strategy))) == faults


def test_annotations_may_say_anything_under_a_good_key() -> None:
    metadata: JSONObject = {**TEMPLATE.metadata, "annotations": {"Note.IO/x": "a b\n", "/": ""}}
    template = MachineTemplate(metadata=metadata, spec=TEMPLATE.spec)
    assert _found(validate_machine_set(_set(template=template))) == [
        ("spec.template.metadata.annotations[/]", "Invalid")
    ]


def test_all_faults_are_reported_at_once() -> None:
    bad = MachineDeployment(
        metadata=META, spec=MachineDeploymentSpec(replicas=-1, strategy=_rolling(-1, None))
    )
    assert _found(validate_machine_deployment(bad)) == [
        ("spec.replicas", "Invalid"),
        ("spec.selector", "Required"),
        ("spec.template.spec.class.kind", "Required"),
        ("spec.template.spec.class.name", "Required"),
        (f"{_ROLLING}.maxUnavailable", "Required"),
        (f"{_ROLLING}.maxSurge", "Invalid"),
    ]


# Classes ------------------------------------------------------------------------------------------


def test_a_class_may_do_without_a_node_template() -> None:
    assert validate_machine_class(MachineClass(metadata=META)) == ()
    assert validate_machine_class(_class()) == ()


@pytest.mark.parametrize(
    ("template", "faults"),
    [
        (
            {"capacity": {"memory": "1Gi"}},
            [
                ("nodeTemplate.capacity[cpu]", "Required"),
                ("nodeTemplate.capacity[gpu]", "Required"),
            ],
        ),
        (
            {"instance_type": "", "region": "", "zone": ""},
            [(f"nodeTemplate.{n}", "Required") for n in ("instanceType", "region", "zone")],
        ),
        (
            {"capacity": {**CAPACITY, "cpu": "four", "x": "-1"}, "virtual_capacity": {"y": "1gi"}},
            [
                ("nodeTemplate.capacity[cpu]", "Invalid"),
                ("nodeTemplate.capacity[x]", "Invalid"),
                ("nodeTemplate.virtualCapacity[y]", "Invalid"),
            ],
        ),
    ],
)
def test_a_fault_of_a_class_is_named(
    template: dict[str, object], faults: list[tuple[str, str]]
) -> None:
    assert _found(validate_machine_class(_class(**template))) == faults


# Texts --------------------------------------------------------------------------------------------


def test_a_fault_reads_like_the_api_servers_own() -> None:
    wrong = _deployment(strategy=DeploymentStrategy(type="Foo"), replicas=-1, selector=None)
    assert describe(validate_machine_deployment(wrong)) == (
        "spec.replicas: Invalid value -1: Replicas has to be a whole number; "
        "spec.selector: Required value: must select the labels of spec.template.metadata; "
        'spec.strategy.type: Invalid value "Foo": '
        "strategy type must be one of [InPlaceUpdate Recreate RollingUpdate]"
    )
    late = _machine(drain_timeout="10")
    assert describe(validate_machine(late)) == (
        'spec.drainTimeout: Invalid value "10": must be a duration like 10m0s '
        "(missing unit (ns, us, ms, s, m or h))"
    )
    assert describe(()) == ""


# Whatever stands there ----------------------------------------------------------------------------

_json = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "demo", "5%", "1h", "x"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["labels", "annotations", "class", "kind", "name", "drainTimeout"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
_raw = st.dictionaries(
    st.sampled_from(["labels", "annotations", "class", "drainTimeout", "nodeTemplate"]), _json
)
_shares = st.none() | st.integers() | st.text(alphabet="0123456789%-.²", max_size=25)
_selectors = st.none() | st.builds(
    LabelSelector,
    match_labels=st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
    match_expressions=st.lists(
        st.builds(
            LabelSelectorRequirement,
            key=st.sampled_from(["name", ""]),
            operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "", "Gt"]),
            values=st.lists(st.sampled_from(["demo", "1"]), max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
)


@given(
    replicas=st.integers(),
    metadata=_raw,
    spec=_raw,
    selector=_selectors,
    kind=st.sampled_from(["", "RollingUpdate", "InPlaceUpdate", "Recreate", "?"]),
    surge=_shares,
    unavailable=_shares,
)
def test_validation_never_raises(
    replicas: int,
    metadata: JSONObject,
    spec: JSONObject,
    selector: LabelSelector | None,
    kind: str,
    surge: int | str | None,
    unavailable: int | str | None,
) -> None:
    template = MachineTemplate(metadata=metadata, spec=spec)
    strategy = DeploymentStrategy(
        type=kind,
        rolling_update=RollingUpdate(max_surge=surge, max_unavailable=unavailable),
        in_place_update=InPlaceUpdate(max_surge=surge, max_unavailable=unavailable),
    )
    deployment = _deployment(
        replicas=replicas, selector=selector, template=template, strategy=strategy
    )
    machine_set = _set(replicas=replicas, selector=selector, template=template)
    of_deployment = validate_machine_deployment(deployment)
    of_set = validate_machine_set(machine_set)
    of_sets_only = {e for e in of_set if e.field == "spec.template.metadata.labels"}
    assert set(of_set) - of_sets_only <= set(of_deployment)
    assert all(error.field.startswith("spec.") and error.detail for error in of_deployment)
    assert isinstance(describe(of_deployment), str)


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5), max_size=4))
def test_validation_of_a_class_never_raises(capacity: dict[str, str | int]) -> None:
    errors = validate_machine_class(_class(capacity=capacity))
    missing = {"cpu", "gpu", "memory"} - capacity.keys()
    assert {e.field for e in errors if e.kind is ErrorKind.REQUIRED} == {
        f"nodeTemplate.capacity[{key}]" for key in missing
    }
