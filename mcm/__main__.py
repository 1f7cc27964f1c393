"""Entry of ``mcm`` and ``python -m mcm``: loads the command line, and lets Ctrl-C end that at once.

Loading takes long enough to be interrupted. As long as there is nothing to clean up, the signal may
do what it does to other programs, rather than show where in which library it struck.
"""

from __future__ import annotations

import signal

from mcm.garbage_collector import collect_rarely


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not if ignored (nohup, &)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    collect_rarely()
    from mcm.cli import main as command_line

    command_line()


if __name__ == "__main__":
    main()
