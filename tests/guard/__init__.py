"""Holds what paths cost, by counts that no noise moves: see ``docs/performance.md``."""
