"""Changing a machine that stays: its VM while it runs, its node in place."""
