"""A machine controller manager for Kubernetes; rooms and their order: docs/architecture.md."""

__version__ = "0.1.0"
