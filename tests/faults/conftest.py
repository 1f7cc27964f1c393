from __future__ import annotations

import pytest

from mcm.sandbox.apiserver.front.http import Certificates
from tests.faults.scenario import Security


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates.load_or_create(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="session")
def security(certificates: Certificates) -> Security:
    return Security.of(certificates)
