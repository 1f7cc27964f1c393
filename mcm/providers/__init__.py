"""Drivers shipped with the project, each a package that implements :class:`mcm.driver.Driver`.

Each is found by its entry point in the group ``mcm.providers``; real clouds sit behind an extra.
"""
