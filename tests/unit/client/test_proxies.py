from __future__ import annotations

import pytest

from mcm.client.proxies import proxy_for

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    ("server", "exceptions", "used"),
    [
        ("https://api.example:6443", "", True),
        ("https://api.example:6443", "other", True),
        ("https://api.example:6443", "*", False),
        ("https://api.example:6443", "example", False),
        ("https://api.example:6443", ".example", False),
        ("https://api.example:6443", "*.example", False),
        ("https://api.example:6443", "ample", True),
        ("https://api.example:6443", "a.b, api.example", False),
        ("https://api.example:6443", "api.example:6443", False),
        ("https://api.example:6443", "api.example:443", True),
        ("https://api.example", "api.example:443", False),
        ("https://10.1.2.3:443", "10.0.0.0/8", False),
        ("https://10.1.2.3:443", "10.2.0.0/16", True),
        ("https://10.1.2.3:443", "10.1.2.3", False),
        ("https://10.1.2.3:443", "nonsense/8", True),
        ("https://[fd00::1]:443", "fd00::/8", False),
        ("https://[fd00::1]:443", "[fd00::1]:443", False),
        ("https://[fd00::1]:443", "[fd00::1]:444", True),
        ("https://127.0.0.1:6443", "", False),
        ("https://localhost:6443", "", False),
        ("https://[::1]:6443", "", False),
    ],
)
def test_exceptions_follow_the_rules_of_go(server: str, exceptions: str, used: bool) -> None:
    chosen = proxy_for(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": exceptions})
    assert chosen == (PROXY if used else "")


def test_each_scheme_has_its_own_variable_in_either_case() -> None:
    environ = {"https_proxy": "secure:1", "HTTP_PROXY": "http://plain:2"}
    assert proxy_for("https://a", environ) == "http://secure:1"
    assert proxy_for("http://a", environ) == "http://plain:2"
    assert proxy_for("https://a", {}) == ""
