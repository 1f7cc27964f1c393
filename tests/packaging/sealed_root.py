"""A root as a container has it: an installed tree, an interpreter, its libraries, all read-only.

No shell, no compiler, no ``/etc/passwd``, no ``/tmp``; processes in it are nobody's and cannot
become anybody. Needs root on Linux, for mounts that only the process itself sees.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final, final

USER: Final = 65532
_ENTER = """
set -eu
root=$1 empty=$2; shift 2
mount --bind "$root" "$root"
while [ "$1" != -- ]; do
  mount --bind "$1" "$root$2"
  mount -o remount,bind,ro "$root$2"
  shift 2
done
shift
mount -o remount,bind,ro "$root"
exec setpriv --no-new-privs --inh-caps=-all \\
  chroot --userspec="$USER_ID:$USER_ID" --groups= "$root" "$@"
"""
ENVIRONMENT: Final[Mapping[str, str]] = {
    "HOME": "/",  # what container runtimes say of a user without an entry, and the image says
    "PATH": "/opt/mcm/bin",
}
_WITH_TOOLS = f"{ENVIRONMENT['PATH']}:{os.defpath}:/usr/sbin:/sbin"  # which are not in the root
_SHARED_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib", "/lib64")
_OF_A_CONTAINER = ("/dev", "/proc")


def why_not() -> str:
    """Say what a machine lacks to seal a root; empty: nothing."""
    for tool in ("unshare", "setpriv", "chroot", "mount"):
        if shutil.which(tool) is None:
            return f"no {tool}"
    tried = subprocess.run(
        ["unshare", "--mount", "--propagation=private", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    return tried.stderr.strip()


@final
class SealedRoot:
    """``installed`` becomes what its files say; ``files`` are put in as a kubelet mounts Secrets.

    ``folder`` is empty and becomes the root.
    """

    def __init__(self, folder: Path, installed: Path, files: Mapping[str, bytes]) -> None:
        self._root = folder / "root"
        self._empty = folder / "empty"
        self._empty.mkdir()
        self._root.mkdir()
        self._mounts: list[str] = []
        self._mount(str(installed / "opt/mcm"), "/opt/mcm")
        for path in (*_SHARED_LIBRARIES, *_OF_A_CONTAINER):
            if os.path.islink(path):
                (self._root / path[1:]).symlink_to(os.readlink(path))
            elif os.path.isdir(path):
                self._mount(path, path)
        self._add_interpreter()
        for name, content in files.items():
            file = self._root / name.lstrip("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        for made in (self._root, *self._root.rglob("*")):
            if not made.is_symlink():
                made.chmod(0o755 if made.is_dir() else 0o644)

    def start(self, command: Sequence[str], output: int | IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a command in it; it inherits nothing but its output."""
        enter = ["unshare", "--mount", "--propagation=private", "sh", "-c", _ENTER, "enter"]
        return subprocess.Popen(
            [*enter, str(self._root), str(self._empty), *self._mounts, "--", *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**ENVIRONMENT, "PATH": _WITH_TOOLS, "USER_ID": str(USER)},
        )

    def _add_interpreter(self) -> None:
        """Bring the interpreter without the packages that are installed for it."""
        prefix = Path(sys.base_prefix)
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        library = prefix / "lib" / version
        if not library.is_relative_to("/usr/lib"):
            self._mount(str(prefix / "lib"), str(prefix / "lib"))
        packages = library / "site-packages"
        if packages.is_dir():
            self._mount(str(self._empty), str(packages), make=False)
        interpreter = self._root / str(prefix / "bin" / version)[1:]
        interpreter.parent.mkdir(parents=True, exist_ok=True)
        interpreter.touch()
        self._mount(
            os.path.realpath(prefix / "bin" / version),
            "/" + str(interpreter.relative_to(self._root)),
            make=False,
        )

    def _mount(self, source: str, target: str, *, make: bool = True) -> None:
        if make:
            (self._root / target[1:]).mkdir(parents=True, exist_ok=True)
        self._mounts += [source, target]
