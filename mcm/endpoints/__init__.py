"""The process's own HTTP endpoints: what monitors, kubelets and operators ask of one replica.

:mod:`.routes` says which path is answered by which page, and to whom. The pages are modules of
their own: :mod:`.metrics`, :mod:`.probes`, :mod:`.configuration`, :mod:`.profiling`,
:mod:`.log_level`. :mod:`.authorization` knows by an API server who may ask (:mod:`.reviews` is what
it asks there), :mod:`.server` listens, and :mod:`.assembly` puts together what options ask for.

No page holds state of the manager, none but the log level's changes any, and none may keep the loop
from turning.
"""

from __future__ import annotations

from mcm.endpoints.assembly import Shown, serving
from mcm.endpoints.probes import Probe

__all__ = ["Probe", "Shown", "serving"]
