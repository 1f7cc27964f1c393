"""Measurements, run by ``make bench`` or by hand: see ``docs/performance.md``. Nothing in ``mcm``
imports from here.

Costs are CPU seconds of the measuring process (``time.process_time``), never wall time, so that
other work on the machine disturbs them little. Comparisons are made within one run.
"""
