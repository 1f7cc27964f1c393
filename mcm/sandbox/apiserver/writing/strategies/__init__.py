"""What single built-in kinds do to their objects before they are kept.

Defaults, derived fields, immutable ones; a kind with no strategy is kept as it was sent.
"""
