"""The kinds of other operators that the chart renders, as far as it uses their fields.

By the definitions of the Prometheus operator (v0.70) and of cert-manager (v1.13). What is not
listed here is refused, where an API server would drop it in silence.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from tests.charts.helm_binary import Manifest

_Duration = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        pattern="^([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
    ),
]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=253)]
_Path = Annotated[str, msgspec.Meta(pattern="^/")]


class _Strict(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    pass


class Metadata(_Strict):
    name: _Name
    namespace: _Name
    labels: dict[str, str]


# ---- monitoring.coreos.com ----------------------------------------------------------------------


class KeySelector(_Strict):
    name: _Name
    key: _Name


class SecretOrConfigMap(_Strict):
    secret: KeySelector


class TLSConfig(_Strict):
    ca: SecretOrConfigMap | None = None
    server_name: str | None = None
    insecure_skip_verify: bool = False


class Relabeling(_Strict):
    action: str = "replace"
    regex: str = ""
    replacement: str = ""
    separator: str = ";"
    source_labels: tuple[str, ...] = ()
    target_label: str = ""


class Endpoint(_Strict):
    port: _Name
    path: _Path
    scheme: Literal["http", "https"] = "http"
    tls_config: TLSConfig | None = None
    bearer_token_file: _Path | None = None
    interval: _Duration | None = None
    scrape_timeout: _Duration | None = None
    relabelings: tuple[Relabeling, ...] = ()
    metric_relabelings: tuple[Relabeling, ...] = ()


class Namespaces(_Strict):
    match_names: Annotated[tuple[_Name, ...], msgspec.Meta(min_length=1)]


class Selector(_Strict):
    match_labels: Annotated[dict[str, str], msgspec.Meta(min_length=1)]


class ServiceMonitorSpec(_Strict):
    endpoints: Annotated[tuple[Endpoint, ...], msgspec.Meta(min_length=1)]
    namespace_selector: Namespaces
    selector: Selector


class Rule(_Strict):
    alert: _Name
    expr: str | int
    for_: _Duration | None = msgspec.field(name="for", default=None)
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class RuleGroup(_Strict):
    name: _Name
    rules: tuple[Rule, ...]
    interval: _Duration | None = None


class PrometheusRuleSpec(_Strict):
    groups: Annotated[tuple[RuleGroup, ...], msgspec.Meta(min_length=1)]


class ServiceMonitor(_Strict):
    api_version: Literal["monitoring.coreos.com/v1"]
    kind: Literal["ServiceMonitor"]
    metadata: Metadata
    spec: ServiceMonitorSpec


class PrometheusRule(_Strict):
    api_version: Literal["monitoring.coreos.com/v1"]
    kind: Literal["PrometheusRule"]
    metadata: Metadata
    spec: PrometheusRuleSpec


# ---- cert-manager.io ----------------------------------------------------------------------------


class IssuerRef(_Strict):
    name: _Name
    kind: Literal["Issuer", "ClusterIssuer"] | None = None
    group: str | None = None


class CertificateSpec(_Strict):
    secret_name: _Name
    issuer_ref: IssuerRef
    dns_names: Annotated[tuple[_Name, ...], msgspec.Meta(min_length=1)]


class SelfSigned(_Strict):
    pass


class IssuerSpec(_Strict):
    self_signed: SelfSigned


class Certificate(_Strict):
    api_version: Literal["cert-manager.io/v1"]
    kind: Literal["Certificate"]
    metadata: Metadata
    spec: CertificateSpec


class Issuer(_Strict):
    api_version: Literal["cert-manager.io/v1"]
    kind: Literal["Issuer"]
    metadata: Metadata
    spec: IssuerSpec


KINDS: dict[str, type[_Strict]] = {
    kind.__name__: kind for kind in (ServiceMonitor, PrometheusRule, Certificate, Issuer)
}


def validate(manifest: Manifest) -> Any:
    """Read a manifest of one of :data:`KINDS`. Raises msgspec.ValidationError, which says where it
    is not what its operator takes."""
    return msgspec.convert(manifest, KINDS[manifest["kind"]])
