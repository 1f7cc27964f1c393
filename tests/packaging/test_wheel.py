"""The wheel and the source archive: what is in them, and that what is installed works."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from mcm import __version__

SOURCES = Path(__file__).resolve().parents[2]
REPRODUCIBLE = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000"}


def built(sources: Path, folder: Path, *targets: str) -> tuple[Path, ...]:
    asked = [argument for target in targets for argument in ("-t", target)]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder), *asked],
        cwd=sources,
        env=REPRODUCIBLE,
        capture_output=True,
        check=True,
    )
    return tuple(folder.iterdir())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (wheel,) = built(SOURCES, tmp_path_factory.mktemp("wheel"), "wheel")
    return wheel


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    (archive,) = built(SOURCES, tmp_path_factory.mktemp("archive"), "sdist")
    return archive


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """An environment with the wheel; its dependencies are those with which the tests run."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = str(folder / "bin/python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    subprocess.run([*pip, "--no-index", "--no-deps", "--no-compile", str(wheel)], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # What is on such a path is imported; the .pth file there, of the sources, is not read.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def run(environment: Path, *command: str) -> str:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(
        [str(environment / "bin" / command[0]), *command[1:]],
        cwd=environment,
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_holds_the_package_and_nothing_beside_it(wheel: Path) -> None:
    assert wheel.name == f"mcm-{__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.partition("/")[0] for name in names} == {"mcm", f"mcm-{__version__}.dist-info"}
    assert {"mcm/py.typed", "mcm/__main__.py", "mcm/providers/simulated/driver.py"} <= set(names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    in_git = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "mcm"],
        cwd=SOURCES,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    tracked = {name for name in in_git if (SOURCES / name).is_file()}
    assert {name for name in names if name.startswith("mcm/")} == tracked


def test_the_archive_holds_what_the_wheel_is_made_of_and_makes_the_same(
    wheel: Path, archive: Path, tmp_path: Path
) -> None:
    with tarfile.open(archive) as opened:
        top = f"mcm-{__version__}"
        names = {name.removeprefix(f"{top}/") for name in opened.getnames()}
        assert {
            "pyproject.toml",
            "constraints.txt",
            "LICENSE",
            "README.md",
            "mcm/py.typed",
        } <= names
        unwanted = ("tests/", "bench/", "charts/", ".ci/", "dev/")
        assert not [name for name in names if name.startswith(unwanted)]
        opened.extractall(tmp_path, filter="data")
    (again,) = built(tmp_path / top, tmp_path / "again", "wheel")
    assert again.read_bytes() == wheel.read_bytes()


def test_what_was_installed_works_without_the_sources(environment: Path) -> None:
    where = run(environment, "python", "-c", "import mcm; print(mcm.__file__)")
    assert where.startswith(str(environment))
    assert run(environment, "mcm", "version").startswith(f"mcm {__version__} ")
    assert "--target-kubeconfig" in run(environment, "mcm", "run", "--help")
    crds = run(environment, "mcm", "crds", "--provider=simulated")
    assert "machinedeployments.machine.sapcloud.io" in crds and "VirtualMachine" in crds
    found = "from mcm.driver.discovery import provider_names as names; print(*names())"
    assert "simulated" in run(environment, "python", "-c", found).split()
