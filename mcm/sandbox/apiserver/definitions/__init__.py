"""CustomResourceDefinitions: refused or accepted, and served from the next request on."""
