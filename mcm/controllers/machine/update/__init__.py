"""Changing the VM of a machine that stays, while it runs."""
