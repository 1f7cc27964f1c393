"""``make start`` on a terminal: Ctrl-C ends it in order, and make sees nothing wrong."""

from __future__ import annotations

import os
import pty
import select
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.timeout(60),
    # The child execs at once: other threads of this process do not matter to it.
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
]

# A Makefile of our own: the project's would install first.
RECIPE = "start:\n\t@exec {python} -m mcm start --dev-dir {folder} {ports} --address=127.0.0.1\n"


def test_ctrl_c_under_make_exits_with_zero(tmp_path: Path, unused_port: int) -> None:
    ports = f"--sandbox-port=0 --port={unused_port}"
    recipe = RECIPE.format(python=sys.executable, folder=tmp_path / "dev", ports=ports)
    (tmp_path / "Makefile").write_text(recipe)
    child, terminal = pty.fork()
    if child == 0:
        os.execvp("make", ["make", "-C", str(tmp_path), "start"])
    _read_until(terminal, b"3 Running")
    os.write(terminal, b"\x03")
    seen = _read_until(terminal, None)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, seen.decode(errors="replace")[-2000:]
    assert b"stopped" in seen
    assert b"Interrupt" not in seen


def _read_until(terminal: int, word: bytes | None) -> bytes:
    """Return what the terminal shows up to ``word``, or to the end."""
    seen = b""
    while word is None or word not in seen:
        ready, _, _ = select.select([terminal], [], [], 30.0)
        assert ready, f"nothing more for 30 s; last: {seen[-500:]!r}"
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # the other side closed the terminal
            chunk = b""
        if not chunk:
            assert word is None, f"ended before {word!r}: {seen[-2000:]!r}"
            return seen
        seen += chunk
    return seen
