"""The main job in one go: clusters, manager, progress, and what to type next."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from mcm import logs
from mcm.clock import SystemClock
from mcm.configuration.configuration import Configuration
from mcm.launcher import clusters
from mcm.launcher.preparation import is_for_clusters
from mcm.launcher.progress import ProgressView
from mcm.options import Options
from mcm.process import run_manager
from mcm.sandbox.cluster import SandboxSettings, sandbox

logger = logging.getLogger(__name__)

_NEXT = """
The sandbox cluster runs. In a second terminal:

  export KUBECONFIG={kubeconfig}
  kubectl get machinedeployments,machinesets,machines,nodes
  kubectl get pods,pvc -o wide                                               # what runs on them
  kubectl scale machinedeployment/sample --replicas=10
  kubectl patch machinedeployment/sample --type=merge \\
    -p '{{"spec":{{"template":{{"spec":{{"class":{{"name":"large"}}}}}}}}}}'
  kubectl delete vm "$(kubectl get vms -o name | head -n 1 | cut -d/ -f2)"   # kill one in the cloud
  kubectl delete machinedeployment/sample deployment/web statefulset/store

Ctrl-C ends it.
"""


async def launch(
    configuration: Configuration,
    *,
    dev_dir: Path,
    sandbox_port: int,
    progress: bool,
    stop: asyncio.Event,
) -> None:
    """Run until ``stop``; with ``progress``, under a live table of the fleet."""
    clock = SystemClock()
    options, places = configuration.options, configuration.places
    view = ProgressView(clock) if progress else None
    async with AsyncExitStack() as stack:
        if view:
            stack.enter_context(view)
        logs.configure(
            options.logging.format,
            verbosity=options.logging.verbosity,
            vmodule=options.logging.vmodule,
            clock=clock,
            stream=view.log_stream if view else None,
        )
        for remark in configuration.remarks:
            logger.warning("%s", remark)
        if is_for_clusters(configuration):
            options = _with_its_cloud(options, places)
            places = {"simulate-cloud": "mcm start", **places}
        else:
            settings = SandboxSettings(
                kubeconfig=dev_dir / clusters.SANDBOX_FILE, port=sandbox_port, samples=True
            )
            options = await _in_sandbox(options, settings, stack)
        observe = view.observe if view else None
        await run_manager(options, stop, clock=clock, observe=observe, places=places)


def _with_its_cloud(options: Options, places: Mapping[str, str]) -> Options:
    """A simulated provider has no cloud elsewhere: it runs here, unless that was refused."""
    chosen = options.clusters
    logger.info(
        "kubeconfigs from %s: %s, %s",
        places.get("target-kubeconfig", places.get("control-kubeconfig")),
        chosen.control_kubeconfig,
        chosen.target_kubeconfig,
    )
    if "simulate-cloud" in places or not chosen.has_target:
        return options
    simulated = options.provider.name == "simulated"
    provider = dataclasses.replace(options.provider, simulate_cloud=simulated)
    return dataclasses.replace(options, provider=provider)


async def _in_sandbox(
    options: Options, settings: SandboxSettings, stack: AsyncExitStack
) -> Options:
    cluster = await stack.enter_async_context(sandbox(settings))
    logger.info("no kubeconfig given: sandbox cluster at %s", cluster.url)
    print(_NEXT.format(kubeconfig=settings.kubeconfig), file=sys.stdout, flush=True)  # noqa: T201
    path = str(settings.kubeconfig)
    its = dataclasses.replace(options.clusters, control_kubeconfig=path, target_kubeconfig=path)
    return dataclasses.replace(options, clusters=its)
