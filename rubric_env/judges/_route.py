"""How a base URL is reached from this environment: its proxy, and whom TLS trusts."""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import certifi

from rubric_env.settings import SettingsError


@dataclass(frozen=True, slots=True)
class Route:
    """`trust` is None where nothing is encrypted."""

    proxy: str | None
    trust: ssl.SSLContext | None


def route_to(base_url: str) -> Route:
    """Raises SettingsError when the environment names what cannot be used, so that it shows before anything is paid."""
    try:
        proxy = _proxy(base_url)
        encrypted = any(url and url.startswith("https:") for url in (base_url, proxy))
        authorities = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
        return Route(proxy, _trust(*authorities) if encrypted else None)
    except (OSError, ValueError) as error:
        where = f"{base_url} cannot be reached from this environment"
        raise SettingsError(f"{where}: {error} (HTTPS_PROXY, ALL_PROXY, SSL_CERT_FILE?)") from error


@cache
def _trust(file: str | None, folder: str | None) -> ssl.SSLContext:
    """One for all connections of the process: it takes 1 MB."""
    context = ssl.create_default_context(cafile=file or (None if folder else certifi.where()), capath=folder or None)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _proxy(base_url: str) -> str | None:
    parts = urlsplit(base_url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    # A proxy of the environment cannot reach this machine's own loopback.
    if not proxy or _is_loopback(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    url = proxy if "://" in proxy else f"http://{proxy}"
    named = urlsplit(url)
    if named.scheme not in ("http", "https") or not named.hostname or named.port == 0:
        raise ValueError(f"a proxy is http://host:port or https://host:port, not {named.scheme}://…")
    return url


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
