"""Calls webhooks over HTTPS, trusting the certificate that their configuration names."""

from __future__ import annotations

import os
import ssl

import aiohttp

from mcm.sandbox.apiserver.admission.review import NoAnswer
from mcm.sandbox.apiserver.admission.webhooks import Webhook

_HEADERS = {"content-type": "application/json", "accept": "application/json"}
_LARGEST_ANSWER = 1024 * 1024


async def call_webhook(url: str, webhook: Webhook, body: bytes) -> bytes:
    """Post a question and return the answer within the webhook's timeout. Raises NoAnswer."""
    timeout = aiohttp.ClientTimeout(total=webhook.timeout)
    try:
        trust = ssl.create_default_context(cadata=webhook.ca or None)
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.post(url, data=body, headers=_HEADERS, ssl=trust) as answer,
        ):
            if not answer.ok:
                raise NoAnswer(f'Post "{url}": the server answered {answer.status}')
            return await answer.content.read(_LARGEST_ANSWER)
    except TimeoutError:
        raise NoAnswer(f'Post "{url}": context deadline exceeded') from None
    except aiohttp.ClientConnectorCertificateError as error:
        why = f"tls: failed to verify certificate: {error.certificate_error}"
        raise NoAnswer(f'Post "{url}": {why}') from None
    except aiohttp.ClientConnectorError as error:
        why = f"dial tcp {error.host}:{error.port}: {_cause(error.os_error)}"
        raise NoAnswer(f'Post "{url}": {why}') from None
    except (aiohttp.ClientError, ssl.SSLError, OSError, ValueError) as error:
        raise NoAnswer(f'Post "{url}": {error}') from None


def _cause(error: OSError) -> str:
    """Say why there is no connection; asyncio puts words of its own into the error."""
    return f"connect: {os.strerror(error.errno).lower()}" if error.errno else str(error)
