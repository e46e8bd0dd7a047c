"""HTTP requests of the package, all through urllib3: connections, proxies, causes of failures, retries."""

import math
import ssl
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from urllib3 import PoolManager


def connections(
    url: str, tls: ssl.SSLContext | None = None, proxy: str | None = None, server_name: str | None = None
) -> "PoolManager":
    """Connections to a server, through a proxy if one is given or the environment names one.

    The variables are those that curl reads: `http_proxy`, `https_proxy`, `no_proxy`.

    Args:
        url: Address of the server.
        tls: TLS settings; by default certificates are checked against the system's authorities.
        proxy: Address of a proxy; by default the environment names it.
        server_name: Name that the server's certificate must have; by default that of the address.
    """
    from urllib.request import getproxies, proxy_bypass

    from urllib3 import PoolManager, ProxyManager
    from urllib3.util import make_headers

    parts = urlsplit(url)
    options: dict[str, Any] = {"retries": False, "ssl_context": tls or _default_tls()}
    if server_name is not None and parts.scheme == "https":
        options |= {"server_hostname": server_name, "assert_hostname": server_name}
    if proxy is None:
        proxy = getproxies().get(parts.scheme)
        # An entry of `no_proxy` may have a port.
        if not proxy or proxy_bypass(parts.netloc.rpartition("@")[2]):
            return PoolManager(**options)
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    login = unquote(urlsplit(proxy).netloc.rpartition("@")[0])
    headers = make_headers(proxy_basic_auth=login) if login else None
    return ProxyManager(proxy, proxy_headers=headers, **options)


@cache
def _default_tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def root_cause(error: BaseException) -> BaseException:
    """System failure behind an error; urllib3 wraps it in errors of its own."""
    from urllib3.exceptions import HTTPError

    while True:
        inner = getattr(error, "reason", None) or error.__cause__
        if inner is None and isinstance(error, HTTPError):
            inner = error.__context__
            # The context may be an error of this package that the caller is handling; it is not the cause.
            if not isinstance(inner, (HTTPError, OSError)) or type(inner).__module__.startswith("leeward"):
                return error
        if not isinstance(inner, BaseException):
            return error
        error = inner


def backoff_s(first_s: float, longest_s: float) -> Iterator[float]:
    """Seconds before each retry, without end: the time doubles up to the longest."""
    wait = first_s
    while True:
        yield wait
        wait = min(2 * wait, longest_s)


def retry_after_s(text: str | None) -> float:
    """Seconds of a `Retry-After` header; 0 for a date or an invalid number."""
    try:
        seconds = float(text or 0)
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) and seconds > 0 else 0.0
