"""The three kinds of patches a server takes besides server-side apply.

Pure functions: no argument is ever changed, and a result shares every subtree that the patch
leaves alone. A patch applies wholly or raises :class:`PatchError`, whose ``code`` is the HTTP
status. Merge patches (RFC 7396) cannot fail; JSON patches (RFC 6902) are checked as a whole before
the first operation is tried; strategic merge patches exist for built-in kinds only and go by the
merge keys in :mod:`mcm.sandbox.apiserver.kinds`. None of them looks at schemas, versions or
preconditions: that is the caller's.
"""

from __future__ import annotations

from mcm.sandbox.apiserver.patches.errors import PatchError
from mcm.sandbox.apiserver.patches.json_patch import apply_json_patch
from mcm.sandbox.apiserver.patches.merge import apply_merge_patch
from mcm.sandbox.apiserver.patches.strategic import apply_strategic_patch

__all__ = ["PatchError", "apply_json_patch", "apply_merge_patch", "apply_strategic_patch"]
