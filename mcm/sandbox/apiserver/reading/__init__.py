"""Get, list and watch: which objects, at which revision, in which version and form."""
