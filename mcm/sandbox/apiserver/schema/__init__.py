"""What a server does with a custom resource's structural schema: prune, default, validate.

Pure functions over decoded JSON; none changes its argument, and results share every subtree that
stays as it is. The order of a write is :func:`prune`, :func:`apply_defaults`, :func:`validate`:
pruning drops what the schema does not know and says what that was (for ``fieldValidation``),
defaults fill absences, validation reports every violation at once, worded as a real server does.
Rules in CEL (``x-kubernetes-validations``) are not evaluated.
"""

from __future__ import annotations

from mcm.sandbox.apiserver.schema.defaults import apply_defaults
from mcm.sandbox.apiserver.schema.pruning import prune
from mcm.sandbox.apiserver.schema.validation import FieldCause, validate

__all__ = ["FieldCause", "apply_defaults", "prune", "validate"]
