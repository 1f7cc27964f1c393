"""``mcm`` up to its first request, in a pod of a made-up cluster: prints what that took, and ends.

``python -m bench.first_request FOLDER run ...``; FOLDER is that of the service account. It imports
nothing that mcm would not, so that what is counted is mcm's.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

from mcm.client import incluster
from mcm.client.http import HTTPTransport


def first_request(*_: object) -> NoReturn:
    spent = os.times()
    print(spent.user + spent.system, *sorted(sys.modules))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    folder = Path(sys.argv.pop(1))
    incluster.available = partial(incluster.available, folder=folder)
    incluster.load = partial(incluster.load, folder=folder)
    HTTPTransport.request = first_request  # type: ignore[method-assign, assignment]
    HTTPTransport.stream = first_request  # type: ignore[method-assign, assignment]
    from mcm.__main__ import main

    main()
