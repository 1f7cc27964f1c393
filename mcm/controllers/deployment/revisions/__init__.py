"""A deployment's revisions, and the ways back to one of them."""
