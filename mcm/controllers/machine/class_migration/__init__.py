"""From a provider-specific class (AWSMachineClass, ...) to the MachineClass that replaces it."""
