"""Kinds of how pods are reached: services and network policies."""

from __future__ import annotations

from mcm.sandbox.apiserver.kinds.meta import CONDITIONS, LABEL_SELECTOR, OBJECT_META
from mcm.sandbox.apiserver.kinds.notation import (
    ANY_OBJECT,
    BOOLEAN,
    INT_OR_STRING,
    INTEGER,
    STRING,
    atomic,
    described,
    integers,
    keyed_list,
    list_of,
    map_of,
    strings,
    struct,
)
from mcm.sandbox.apiserver.registry import ResourceInfo

NETWORKING_GROUP = "networking.k8s.io"
NETWORK_POLICIES = f"networkpolicies.{NETWORKING_GROUP}"
SERVICES = "services"

SERVICE = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                **strings(
                    "clusterIP",
                    "externalName",
                    "externalTrafficPolicy",
                    "internalTrafficPolicy",
                    "ipFamilyPolicy",
                    "loadBalancerClass",
                    "loadBalancerIP",
                    "sessionAffinity",
                    "trafficDistribution",
                ),
                **integers("healthCheckNodePort"),
                "allocateLoadBalancerNodePorts": BOOLEAN,
                "clusterIPs": list_of(STRING),
                "externalIPs": list_of(STRING),
                "ipFamilies": list_of(STRING),
                "loadBalancerSourceRanges": list_of(STRING),
                "ports": keyed_list(
                    struct(
                        {
                            "port": INTEGER,
                            "nodePort": INTEGER,
                            **strings("appProtocol", "name"),
                            "protocol": {**STRING, "default": "TCP"},
                            "targetPort": INT_OR_STRING,
                        }
                    ),
                    "port",
                    "protocol",
                ),
                "publishNotReadyAddresses": BOOLEAN,
                "selector": atomic(map_of(STRING)),
                "sessionAffinityConfig": ANY_OBJECT,
            }
        ),
        "status": struct({"conditions": CONDITIONS, "loadBalancer": ANY_OBJECT}),
    },
    description="A stable address for a set of pods.",
)

_PORTS = list_of(struct({"endPort": INTEGER, "port": INT_OR_STRING, "protocol": STRING}))
_PEERS = list_of(
    struct(
        {
            "ipBlock": struct({"cidr": STRING, "except": list_of(STRING)}),
            "namespaceSelector": LABEL_SELECTOR,
            "podSelector": LABEL_SELECTOR,
        }
    )
)

NETWORK_POLICY = struct(
    {
        "metadata": OBJECT_META,
        "spec": struct(
            {
                "podSelector": described(LABEL_SELECTOR, "The pods that the policy is for."),
                "policyTypes": described(list_of(STRING), "Ingress, Egress or both."),
                "ingress": list_of(struct({"from": _PEERS, "ports": _PORTS})),
                "egress": list_of(struct({"to": _PEERS, "ports": _PORTS})),
            }
        ),
    },
    description="Who may talk to a set of pods, and to whom they may.",
)

NETWORKING_RESOURCES: tuple[ResourceInfo, ...] = (
    ResourceInfo(
        NETWORKING_GROUP,
        "v1",
        "networkpolicies",
        "NetworkPolicy",
        short_names=("netpol",),
        unconditional_update=True,
        builtin=True,
    ),
)
