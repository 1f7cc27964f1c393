"""What else acts beside the manager: webhooks in its way, other managers in its namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcm.api.machine import GROUP
from mcm.preflight.finding import Finding, ok, warning
from mcm.preflight.seen import JSONDocument, Seen, Unread

_CHECK: Final = "surroundings"
_OF_GO: Final = ("machine-controller-manager", "machine-controller", "machine-controller-manager-")
"""How its programs and its images are called, or begin."""
_GROUPS: Final = frozenset({GROUP, "*"})


def check_surroundings(seen: Seen) -> Iterator[Finding]:
    yield from _webhooks(seen)
    yield from _managers(seen)


def _webhooks(seen: Seen) -> Iterator[Finding]:
    if isinstance(seen.webhooks, Unread):
        text = f"cannot be read: {seen.webhooks.why}"
        yield warning(_CHECK, "webhooks", text, "run this once as an administrator, too")
        return
    number = 0
    for configuration in seen.webhooks:
        for hook in configuration.get("webhooks") or ():
            if not any(
                _GROUPS & set(rule.get("apiGroups") or ()) for rule in hook.get("rules") or ()
            ):
                continue
            number += 1
            if hook.get("failurePolicy", "Fail") == "Fail":
                name = configuration["metadata"]["name"]
                text = (
                    f"is asked of every change of {GROUP}; while it does not answer, none is made"
                )
                remedy = "make sure that it answers, and lets the manager's patches pass"
                yield warning(_CHECK, f"{configuration['kind']} {name}", text, remedy)
    if not number:
        yield ok(_CHECK, "webhooks", f"none is asked of objects of {GROUP}")


def _managers(seen: Seen) -> Iterator[Finding]:
    if isinstance(seen.deployments, Unread):
        return  # not what the manager needs to read; leases tell who leads
    for deployment in seen.deployments:
        spec = deployment.get("spec") or {}
        programs = sorted({name for c in containers_of(deployment) if (name := program_of(c))})
        replicas = spec.get("replicas", 1)
        if not programs or not replicas:
            continue
        meta = deployment["metadata"]
        text = f"runs {', '.join(programs)} ({replicas} replicas)"
        scale = f"kubectl -n {meta.get('namespace')} scale deployment {meta['name']} --replicas=0"
        yield warning(_CHECK, f"Deployment {meta['name']}", text, f"when ours is to lead: {scale}")


def containers_of(workload: JSONDocument) -> list[Mapping[str, Any]]:
    """Return the containers of a workload's template, or of a pod."""
    spec = workload.get("spec") or {}
    pod = (spec.get("template") or {}).get("spec") or spec
    return list(pod.get("containers") or ())


def program_of(container: Mapping[str, Any]) -> str:
    """Return which of the Go original's programs a container runs; empty for another one."""
    words = [*(container.get("command") or ()), str(container.get("image", "")).partition("@")[0]]
    for word in words:
        name = str(word).rpartition("/")[2].partition(":")[0]
        if name in _OF_GO or name.startswith(_OF_GO[-1]):
            return name
    return ""
