"""Updating what a machine's Node runs, without a new VM: what comes next, and who writes what."""
