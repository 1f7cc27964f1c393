"""A Prometheus of one's own: started, asked, ended."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from mcm.clock import SystemClock

_PATIENCE = 30.0
_LOOK_EVERY = 0.2


class Prometheus:
    """Asks one over HTTP."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the result of an instant query: a vector's elements. Raises AssertionError."""
        async with self._session.post("/api/v1/query", data={"query": expression}) as answer:
            body = await answer.json()
        assert body["status"] == "success", f"{expression}: {body}"
        result = body["data"]["result"]
        return result if body["data"]["resultType"] == "vector" else [{"value": result}]

    async def firing(self) -> set[str]:
        """Return the names of the alerts that fire."""
        alerts = await self._get("/api/v1/alerts")
        return {a["labels"]["alertname"] for a in alerts["alerts"] if a["state"] == "firing"}

    async def targets(self) -> list[dict[str, Any]]:
        return list((await self._get("/api/v1/targets"))["activeTargets"])

    async def troubled_rules(self) -> dict[str, str]:
        """Return what is wrong with rules that cannot be evaluated."""
        groups = (await self._get("/api/v1/rules"))["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        return {rule["name"]: rule["lastError"] for rule in rules if rule.get("lastError")}

    async def ready(self) -> bool:
        try:
            async with self._session.get("/-/ready") as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    async def _get(self, path: str) -> Any:
        async with self._session.get(path) as answer:
            return (await answer.json())["data"]


@asynccontextmanager
async def scraping(
    binary: Path, folder: Path, targets: Mapping[str, int], rules: str
) -> AsyncIterator[Prometheus]:
    """Run it while the context lasts; every second it scrapes each job's port and judges rules."""
    (folder / "rules.yaml").write_text(rules)
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(_configuration(targets)))
    port = _unused_port()
    with (folder / "log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            binary,
            f"--config.file={folder / 'prometheus.yaml'}",
            f"--storage.tsdb.path={folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stdout=log,
            stderr=log,
        )
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            prometheus = Prometheus(session)
            async with asyncio.timeout(_PATIENCE):
                while not await prometheus.ready():
                    assert process.returncode is None, (folder / "log").read_text()[-2000:]
                    await SystemClock().sleep(_LOOK_EVERY)
            yield prometheus
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


def _configuration(targets: Mapping[str, int]) -> dict[str, object]:
    jobs = [
        {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        for job, port in targets.items()
    ]
    times = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    return {"global": times, "rule_files": ["rules.yaml"], "scrape_configs": jobs}


def _unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
