"""The main job in one go: clusters, manager, progress, and what to type next."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from mcm import logs
from mcm.clock import SystemClock
from mcm.launcher import clusters
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
    options: Options, *, dev_dir: Path, sandbox_port: int, progress: bool, stop: asyncio.Event
) -> None:
    """Run until ``stop``; with ``progress``, under a live table of the fleet."""
    clock = SystemClock()
    view = ProgressView(clock) if progress else None
    async with AsyncExitStack() as stack:
        if view:
            stack.enter_context(view)
        logs.configure(
            options.log_format,
            verbosity=options.verbosity,
            clock=clock,
            stream=view.log_stream if view else None,
        )
        chosen = clusters.choose(os.environ, dev_dir)
        if chosen is None:
            settings = SandboxSettings(
                kubeconfig=dev_dir / clusters.SANDBOX_FILE, port=sandbox_port, samples=True
            )
            options = await _in_sandbox(options, settings, stack)
        else:
            options = dataclasses.replace(
                options,
                control_kubeconfig=chosen.control,
                target_kubeconfig=chosen.target,
                simulate_cloud=options.provider == "simulated",
            )
            logger.info("kubeconfigs from %s: %s, %s", chosen.origin, chosen.control, chosen.target)
        await run_manager(options, stop, clock=clock, observe=view.observe if view else None)


async def _in_sandbox(
    options: Options, settings: SandboxSettings, stack: AsyncExitStack
) -> Options:
    cluster = await stack.enter_async_context(sandbox(settings))
    logger.info("no kubeconfig given: sandbox cluster at %s", cluster.url)
    print(_NEXT.format(kubeconfig=settings.kubeconfig), file=sys.stdout, flush=True)  # noqa: T201
    path = str(settings.kubeconfig)
    return dataclasses.replace(options, control_kubeconfig=path, target_kubeconfig=path)
