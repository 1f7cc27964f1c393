from __future__ import annotations

from pathlib import Path

import pytest

from mcm.client.errors import ConfigurationError
from mcm.launcher.clusters import CONTROL_FILE, TARGET_FILE, Clusters, choose


def files(folder: Path, *names: str) -> list[str]:
    for name in names:
        (folder / name).write_text("kind: Config\n")
    return [str(folder / name) for name in names]


def test_nothing_given_means_the_sandbox(tmp_path: Path) -> None:
    assert choose({}, tmp_path) is None


def test_the_environment_wins_over_the_folder(tmp_path: Path) -> None:
    control, target = files(tmp_path, "c", "t")
    files(tmp_path, CONTROL_FILE, TARGET_FILE)
    environ = {"CONTROL_KUBECONFIG": control, "TARGET_KUBECONFIG": target}
    assert choose(environ, tmp_path) == Clusters(control, target, "environment")


def test_the_folder_serves_without_environment(tmp_path: Path) -> None:
    control, target = files(tmp_path, CONTROL_FILE, TARGET_FILE)
    assert choose({}, tmp_path) == Clusters(control, target, str(tmp_path))


def test_the_target_alone_serves_as_both(tmp_path: Path) -> None:
    (target,) = files(tmp_path, TARGET_FILE)
    assert choose({}, tmp_path) == Clusters(target, target, str(tmp_path))


def test_the_control_cluster_alone_is_refused_by_name(tmp_path: Path) -> None:
    (control,) = files(tmp_path, "c")
    with pytest.raises(ConfigurationError, match="TARGET_KUBECONFIG is missing"):
        choose({"CONTROL_KUBECONFIG": control}, tmp_path)


def test_a_path_in_the_environment_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="TARGET_KUBECONFIG: there is no file"):
        choose({"TARGET_KUBECONFIG": str(tmp_path / "nope")}, tmp_path)


def test_no_target_cluster_can_be_asked_for(tmp_path: Path) -> None:
    (control,) = files(tmp_path, "c")
    environ = {"CONTROL_KUBECONFIG": control, "TARGET_KUBECONFIG": "none"}
    assert choose(environ, tmp_path) == Clusters(control, "none", "environment")
