"""A whole fleet's life in one process, in which hours pass in milliseconds and chance is a seed's.

:mod:`mcm.simulation.virtualtime` is the event loop whose time is a number;
:mod:`mcm.simulation.faults` decides what goes wrong between a client and the server, and
:mod:`mcm.simulation.transport` carries that out; :mod:`mcm.simulation.harness` runs the sandbox's
API server and world with the manager among them, and :mod:`mcm.simulation.witness` sees every
moment of the fleet. One seed gives one history.

For tests, simulations and benchmarks: nothing that a user runs imports this room.
"""
