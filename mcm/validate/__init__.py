"""``mcm validate``: judges manifest files before anybody applies them; no cluster is needed.

:mod:`.inputs` finds the documents, :mod:`.document` judges each by itself (with
:mod:`.unknown_fields` and, if a provider offers it, :mod:`.provider_specs`), :mod:`.relations`
looks at what documents say of one another, :mod:`.report` writes what was found. Nothing of a
Secret's data is ever shown.
"""
