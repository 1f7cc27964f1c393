"""The log of a pod's containers: nothing runs here, and this is said rather than shown."""

from __future__ import annotations

from typing import cast

from mcm.api.meta import JSONObject
from mcm.client.transport import Response
from mcm.sandbox.apiserver.errors import bad_request, not_found
from mcm.sandbox.apiserver.reading.rendering import text_response
from mcm.sandbox.apiserver.requests.calls import Call, ServerState

_SAID = "(This cluster simulates its pods: the container {name} runs nothing and logs nothing.)\n"


def pod_log(state: ServerState, call: Call) -> Response:
    """Answer in words. Raises StatusError: 404 without the pod, 400 for a container it has not, or
    where one of several must be named."""
    target = call.target
    found = state.store.collection(call.info.storage).get(f"{target.namespace}/{target.name}")
    if found is None:
        raise not_found(call.info, target.name)
    spec = cast(JSONObject, found.body["spec"])
    containers = cast("list[JSONObject]", spec.get("containers") or [])
    names = [str(container.get("name")) for container in containers]
    asked = call.query.get("container", "")
    if not asked and len(names) > 1:
        raise bad_request(
            f"a container name must be specified for pod {target.name}, "
            f"choose one of: [{' '.join(names)}]"
        )
    if asked and asked not in names:
        raise bad_request(f"container {asked} is not valid for pod {target.name}")
    return text_response(_SAID.format(name=asked or names[0]))
