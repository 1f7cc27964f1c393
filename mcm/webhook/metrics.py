"""What the webhook counts: its answers, and what it made of the certificates it found."""

from __future__ import annotations

from typing import final

from prometheus_client import CollectorRegistry, Counter


@final
class WebhookMetrics:
    """``result`` is allowed, warned, refused or bad (no review, so no answer to it)."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.reviews = Counter(
            "mcm_webhook_reviews_total",
            "Reviews answered by the validating webhook.",
            ("result",),
            registry=registry,
        )
        for result in ("allowed", "warned", "refused", "bad"):
            self.reviews.labels(result)  # rates are right from the first one on
        self.rotations = Counter(
            "mcm_webhook_certificate_rotations_total",
            "Looks at the webhook's certificate files that found another pair, taken or refused.",
            ("result",),
            registry=registry,
        )
        for result in ("taken", "refused"):
            self.rotations.labels(result)
