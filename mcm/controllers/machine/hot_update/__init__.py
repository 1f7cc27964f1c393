"""Bringing a VM that runs to what its class says now: if it needs to be, when, and how."""
