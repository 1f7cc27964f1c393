"""The pytest plugin: checks an installed provider by its name, without a test being written.

``pytest -p mcm.conformance.plugin --mcm-provider NAME --mcm-machineclass FILE --mcm-secret FILE``
collects the rules in place of the folder's own tests.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcm.client.errors import ConfigurationError
from mcm.clock import SystemClock
from mcm.conformance import suite
from mcm.conformance.subject import Subject
from mcm.driver import Driver, load_provider
from mcm.vm.manifests import read_class, read_secrets
from mcm.vm.offline import NoCluster, context_of


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("mcm", "the contract of mcm's machine providers")
    group.addoption("--mcm-provider", metavar="NAME", help="provider to check, as installed")
    group.addoption("--mcm-machineclass", metavar="FILE", type=Path,
                    help="manifest of a class to make VMs of")  # fmt: skip
    group.addoption("--mcm-secret", metavar="FILE", type=Path, action="append", default=[],
                    help="manifest of the class's Secret; may be repeated")  # fmt: skip
    group.addoption("--mcm-neighbour", metavar="FILE", type=Path,
                    help="manifest of a class of another cluster in the same account")  # fmt: skip
    group.addoption("--mcm-changed-class", metavar="FILE", type=Path,
                    help="the class with another hot-updatable part")  # fmt: skip
    group.addoption("--mcm-visible-within", metavar="SECONDS", type=float, default=0.0,
                    help="how far the cloud's listings lag behind")  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--mcm-provider"):
        config.args[:] = [suite.__file__]


@pytest.fixture(scope="session")
def mcm_subject(pytestconfig: pytest.Config) -> Subject:
    """What the options say. Ends the session if they are wrong."""
    option = pytestconfig.getoption
    class_file: Path | None = option("--mcm-machineclass")
    if class_file is None or not option("--mcm-secret"):
        pytest.exit("--mcm-provider needs --mcm-machineclass and --mcm-secret", returncode=4)
    try:
        return _subject(class_file, option)
    except ConfigurationError as error:
        pytest.exit(str(error), returncode=4)


def _subject(class_file: Path, option: Callable[[str], Any]) -> Subject:
    machine_class, clock = read_class(class_file), SystemClock()
    factory = load_provider(option("--mcm-provider"))
    namespace = machine_class.metadata.namespace or "default"

    def new_driver() -> Driver:
        return factory(context_of(NoCluster(), namespace=namespace, clock=clock))

    neighbour, changed = option("--mcm-neighbour"), option("--mcm-changed-class")
    return Subject(
        new_driver=new_driver,
        machine_class=machine_class,
        secret=read_secrets(option("--mcm-secret")),
        neighbour=read_class(neighbour) if neighbour else None,
        changed_class=read_class(changed) if changed else None,
        visible_within=option("--mcm-visible-within"),
        clock=clock,
    )
