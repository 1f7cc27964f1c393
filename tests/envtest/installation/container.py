"""A container as a local process: its own root, read-only, its own user, nothing but its mounts.

The root is put together in a mount namespace: the machine's programs, this checkout in the place of
an image, and the volumes. Needs root's rights.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import final

_REPOSITORY = Path(__file__).resolve().parents[3]
_ENTRY_POINT = (sys.executable, "-m", "mcm")
_SYSTEM = ("usr", "bin", "sbin", "lib", "lib64")
_FILES_OF_ETC = ("nsswitch.conf", "passwd", "group", "ld.so.cache", "localtime")
_STOPS_WITHIN = 10.0


def why_impossible() -> str:
    """Say why no container can be run here; empty if one can."""
    probe = ["unshare", "--mount", "--propagation=private", "true"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        return str(error)
    return done.stderr.strip()


@final
@dataclass(frozen=True)
class Mount:
    folder: Path
    at: str
    read_only: bool


@final
@dataclass(frozen=True)
class ContainerSpec:
    """``folder`` is for whatever the container leaves behind."""

    folder: Path
    command: Sequence[str]
    args: Sequence[str]
    environment: Mapping[str, str]
    mounts: Sequence[Mount]
    hosts: Mapping[str, str]
    """Addresses by name, as DNS would tell."""
    user: int
    group: int


@final
class Container:
    """Running from the first; its output is in ``log``, that of earlier runs in front."""

    def __init__(self, spec: ContainerSpec, log: Path) -> None:
        self.log = log
        root = spec.folder / "root"
        root.mkdir(parents=True, exist_ok=True)
        script = "\n".join(_script(spec, root))
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                ["unshare", "--mount", "--propagation=private", "sh", "-euc", script],
                env=_environment(spec),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def terminate(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(_STOPS_WITHIN)


def _environment(spec: ContainerSpec) -> dict[str, str]:
    return {
        "PATH": f"{sys.prefix}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": "/",
        "PYTHONPATH": os.fspath(_REPOSITORY),
        "PYTHONDONTWRITEBYTECODE": "1",
        **spec.environment,
    }


def _script(spec: ContainerSpec, root: Path) -> Iterator[str]:
    quoted = shlex.quote(os.fspath(root))
    yield f"mount -t tmpfs -o mode=0755 tmpfs {quoted}"
    for name in _SYSTEM:
        source = Path("/", name)
        if source.is_symlink():
            yield f"cp -P {source} {quoted}/{name}"
        elif source.is_dir():
            yield from _bound(source, root, source, read_only=True)
    for name in ("dev", "proc"):
        yield f"mkdir {quoted}/{name}; mount --rbind /{name} {quoted}/{name}"
    yield f"mkdir {quoted}/etc"
    for name in _FILES_OF_ETC:
        if Path("/etc", name).is_file():
            yield f"cp -L /etc/{name} {quoted}/etc/{name}"
    hosts = "".join(f"{address} {name}\n" for name, address in spec.hosts.items())
    yield f"printf %s {shlex.quote(hosts)} > {quoted}/etc/hosts"
    for mount in spec.mounts:
        yield from _bound(mount.folder, root, Path(mount.at), read_only=mount.read_only)
    for path in _code():
        yield from _bound(path, root, path, read_only=True)
    yield f"mount -o remount,ro {quoted}"
    identity = f"--reuid={spec.user} --regid={spec.group} --groups={spec.group}"
    rights = "--no-new-privs --bounding-set=-all --inh-caps=-all"
    command = shlex.join([*(_command(spec.command)), *spec.args])
    yield f"exec chroot {quoted} setpriv {identity} {rights} {command}"


def _bound(source: Path, root: Path, at: Path, *, read_only: bool) -> Iterator[str]:
    place = shlex.quote(f"{root}{at}")
    yield f"mkdir -p {place}; mount --bind {shlex.quote(os.fspath(source))} {place}"
    if read_only:
        yield f"mount -o remount,bind,ro {place}"


def _code() -> list[Path]:
    """The checkout and its Python, wherever they are; what lies in another comes with it."""
    wanted = {_REPOSITORY, Path(sys.prefix), Path(sys.base_prefix)}
    system = {Path("/", name) for name in _SYSTEM}
    return sorted(path for path in wanted if not any(p in system | wanted for p in path.parents))


def _command(command: Sequence[str]) -> Sequence[str]:
    """What the image has by these names."""
    if not command:
        return _ENTRY_POINT
    return (sys.executable, *command[1:]) if command[0] == "python3" else command
