"""The provider ``directory``: a cloud that is a directory, in which each VM is a file."""

from mcm.driver import Driver, ProviderContext
from mcm_provider_directory.driver import DirectoryDriver


def create(context: ProviderContext) -> Driver:
    """The factory that the entry point names. This cloud needs nothing of the context."""
    return DirectoryDriver()
