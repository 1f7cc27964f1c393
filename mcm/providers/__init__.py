"""Drivers shipped with the project. Each is a package that implements :class:`mcm.driver.Driver`
and is found by its entry point in the group ``mcm.providers``; real clouds sit behind an extra."""
