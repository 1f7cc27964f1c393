"""Variables that set flags, those that look like it, and those of Services named like us."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcm.configuration.configuration import FLAGS
from mcm.configuration.environment import read_environment, variable_of
from mcm.configuration.given import Given, Source


def read(**environ: str) -> Source:
    return read_environment(environ, FLAGS.values())


def service_links(service: str) -> dict[str, str]:
    """What Kubernetes puts into the pods of a namespace with this Service."""
    name = service.upper().replace("-", "_")
    return {
        f"{name}_SERVICE_HOST": "10.0.0.11",
        f"{name}_SERVICE_PORT": "8443",
        f"{name}_SERVICE_PORT_HTTPS_WEBHOOK": "8443",
        f"{name}_PORT": "tcp://10.0.0.11:8443",
        f"{name}_PORT_8443_TCP": "tcp://10.0.0.11:8443",
        f"{name}_PORT_8443_TCP_PROTO": "tcp",
        f"{name}_PORT_8443_TCP_PORT": "8443",
        f"{name}_PORT_8443_TCP_ADDR": "10.0.0.11",
    }


def test_a_variable_bears_the_flags_name() -> None:
    source = read(MCM_LEADER_ELECT="false", MCM_V="4", MCM_NODE_CONDITIONS="A,B", HOME="/x")
    assert source.given == {
        "leader-elect": Given(False, "MCM_LEADER_ELECT"),
        "v": Given(4, "MCM_V"),
        "node-conditions": Given(("A", "B"), "MCM_NODE_CONDITIONS"),
    }
    assert source.remarks == source.problems == []


def test_an_empty_variable_is_none() -> None:
    assert read(MCM_PORT="", MCM_NAMESPACE="") == Source()


@pytest.mark.parametrize("service", ["mcm", "mcm-metrics", "mcm-webhook", "mcm-blue"])
def test_links_to_services_set_no_flag(service: str) -> None:
    source = read(**service_links(service))
    assert source.given == {}
    assert source.problems == []
    variable = f"{service.upper().replace('-', '_')}_PORT"
    if variable in map(variable_of, FLAGS):
        assert len(source.remarks) == 1
        assert source.remarks[0].startswith(f"{variable}: the address of a Service")
    else:
        assert source.remarks == []


def test_a_port_is_one_beside_links() -> None:
    links = service_links("mcm") | {"MCM_PORT": "8080"}
    assert read(**links).given == {"port": Given(8080, "MCM_PORT")}


def test_unknown_variables_are_named_and_ignored() -> None:
    source = read(MCM_PROT="1", MC_DRIVER="x", MCMX="y")
    assert source.given == {}
    assert source.remarks == [
        "MCM_PROT: this variable is ignored, as it names no flag; did you mean MCM_PORT?",
        "MC_DRIVER: this variable is ignored, as the specification defines none with MC_",
    ]


def test_no_flag_is_named_as_a_link_to_a_service_is() -> None:
    for name in FLAGS:
        values = read(**{variable_of(name): "no such value"})
        assert values.given or values.problems, name


@given(value=st.text(min_size=1, max_size=20))
def test_a_bad_value_names_its_variable(value: str) -> None:
    source = read(MCM_PORT=value)
    assert bool(source.given) != bool(source.problems or source.remarks)
    assert all(problem.startswith("MCM_PORT: ") for problem in source.problems)
