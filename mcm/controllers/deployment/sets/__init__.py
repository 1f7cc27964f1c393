"""A deployment's sets: what they should be, and the writes that make them so."""
