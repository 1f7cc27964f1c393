"""From a Machine object to a VM that can join: user data, bootstrap token, VM, record of it."""
