"""The worked example of docs/providers.md is a package that builds, installs, and keeps the
contract; and what the page quotes is what stands in its files."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "examples" / "provider-directory"
PAGE = ROOT / "docs" / "providers.md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the package is installed into, as anybody would install it."""
    folder = tmp_path_factory.mktemp("site")
    install = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
    python(*install, "--disable-pip-version-check", "--target", str(folder), str(EXAMPLE))
    return folder


def python(*arguments: str, path: Path | None = None, cwd: Path | None = None) -> str:
    paths = [str(ROOT), *([str(path)] if path else [])]
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=cwd or ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_own_tests_pass_where_it_is_installed(site: Path, tmp_path: Path) -> None:
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_contract.py").write_text((EXAMPLE / "tests/test_contract.py").read_text())
    output = python("-m", "pytest", "-q", "-rs", str(tests), path=site, cwd=tmp_path)
    assert re.search(r"\b26 passed, 7 skipped\b", output), output
    assert "does not implement GetVolumeIDs" in output


@pytest.fixture
def manifests(tmp_path: Path) -> tuple[str, str]:
    """The example's class, with a folder of this test for its cloud, and its Secret."""
    cloud = tmp_path / "cloud"
    cloud.mkdir()
    text = (EXAMPLE / "class.yaml").read_text()
    (tmp_path / "class.yaml").write_text(text.replace("/tmp/directory-cloud", str(cloud)))
    return str(tmp_path / "class.yaml"), str(EXAMPLE / "secret.yaml")


def test_the_plugin_checks_what_is_installed(
    site: Path, tmp_path: Path, manifests: tuple[str, str]
) -> None:
    class_, secret = manifests
    options = ["--mcm-provider=directory", f"--mcm-machineclass={class_}", f"--mcm-secret={secret}"]
    plugin = ["-m", "pytest", "-q", "-p", "mcm.conformance.plugin"]
    output = python(*plugin, *options, path=site, cwd=tmp_path)
    assert re.search(r"\b23 passed, 10 skipped\b", output), output
    refused = subprocess.run(
        [sys.executable, *plugin, options[0]],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{site}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert refused.returncode == 4
    assert "--mcm-provider needs --mcm-machineclass and --mcm-secret" in refused.stdout


def test_mcm_vm_makes_one(site: Path, manifests: tuple[str, str]) -> None:
    files = ["--machineclass", manifests[0], "--secret", manifests[1], "--provider", "directory"]
    output = python("-m", "mcm", "vm", "create", "--machinename", "test", *files, path=site)
    assert "provider ID  directory:///ours/test" in output


def test_mcm_finds_it_by_its_name(site: Path) -> None:
    code = "from mcm.driver import load_provider as l; print(l('directory').__module__)"
    assert python("-c", code, path=site).strip() == "mcm_provider_directory"


def test_the_page_quotes_the_files() -> None:
    quotes = re.findall(r"^`([\w/.]+)`:\n\n```\w+\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    assert {name for name, _ in quotes} >= {
        "mcm_provider_directory/driver.py",
        "mcm_provider_directory/provider_spec.py",
        "pyproject.toml",
        "tests/test_contract.py",
    }
    for name, quote in quotes:
        parts = [part.strip("\n") for part in re.split(r"^ *…$", quote, flags=re.M)]
        text = (EXAMPLE / name).read_text()
        for part in parts:
            assert part in text, f"{name} does not have:\n{part}"
