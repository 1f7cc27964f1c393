"""``mcm start`` interrupted anywhere, once or twice: it ends, and says nothing of loose ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(120)

PATIENCE = 60.0


@pytest.mark.parametrize(
    ("word", "interrupts"),
    [("sandbox cluster at", 1), ("metrics on", 2), ("leading: ", 2)],
)
def test_an_interrupted_start_leaves_nothing_open(
    word: str, interrupts: int, tmp_path: Path, unused_port: int
) -> None:
    command = [sys.executable, "-m", "mcm", "start", "--no-progress", "--v=4"]
    where = [f"--dev-dir={tmp_path}", "--sandbox-port=0", f"--port={unused_port}"]
    environment = {k: v for k, v in os.environ.items() if "KUBECONFIG" not in k}
    with subprocess.Popen(
        [*command, *where],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if word in line:
                    break
            for _ in range(interrupts):
                process.send_signal(signal.SIGINT)
            # The second may come too late: then it has ended in order.
            said, _ = process.communicate(timeout=PATIENCE)
            assert process.returncode in ((0,) if interrupts == 1 else (0, 130)), said
        finally:
            process.kill()
    for loose_end in ("Traceback", "Unclosed", "never retrieved", "was destroyed"):
        assert loose_end not in said
