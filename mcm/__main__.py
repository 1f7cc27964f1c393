"""``python -m mcm``: the same as the console script."""

from mcm.cli import main

main()
