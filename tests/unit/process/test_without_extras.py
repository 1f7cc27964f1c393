"""What works where mcm was installed without extras, and what is said where it does not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_WITHOUT = """
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("cryptography", "opentelemetry", "rich", "trustme"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _WITHOUT + code], capture_output=True, text=True, check=False
    )


def mcm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return python(f"from mcm.cli import main\nmain({list(arguments)!r})")


def test_all_that_a_running_manager_loads_is_there() -> None:
    result = python(
        "import mcm.process, mcm.manager, mcm.connections, mcm.endpoints\n"
        "import mcm.client.kubeconfig, mcm.client.tls, mcm.client.execplugin\n"
        "import kubernetes_asyncio.config.kube_config\n"
        "from mcm.driver.discovery import load_provider\n"
        "print(callable(load_provider('simulated')))\n"
    )
    assert (result.stdout, result.returncode) == ("True\n", 0), result.stderr


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["run", "--help"], "--target-kubeconfig"),
        (["sandbox", "--help"], "--kubeconfig"),
        (["start", "--help"], "--sandbox-port"),
        (["crds", "--provider", "simulated"], "VirtualMachine"),
        (["version"], "mcm "),
    ],
)
def test_commands_that_need_no_extra_work(command: list[str], says: str) -> None:
    result = mcm(*command)
    assert result.returncode == 0, result.stderr
    assert says in result.stdout


@pytest.mark.parametrize("command", ["start", "sandbox"])
def test_a_command_whose_extra_is_missing_says_in_one_line_how_to_get_it(command: str) -> None:
    result = mcm(command)
    assert result.returncode == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"mcm: `mcm {command}` needs ")
    assert "pip install 'mcm[sandbox]'" in line


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
"""


def test_traces_need_their_extra_and_say_so(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(KUBECONFIG)
    result = mcm("run", "--otlp-endpoint=http://127.0.0.1:4318", f"--target-kubeconfig={path}")
    assert result.returncode != 0
    assert "--otlp-endpoint: traces need the extra mcm[tracing]" in result.stderr


def test_another_missing_module_is_no_matter_of_extras() -> None:
    result = python("sys.modules['aiohttp'] = None\nfrom mcm.cli import main\nmain(['sandbox'])\n")
    assert "mcm[sandbox]" not in result.stderr
    assert "aiohttp" in result.stderr and result.returncode == 1
