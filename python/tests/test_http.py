"""HTTP requests of the package: proxies, and waits between retries."""

from itertools import islice

import pytest
from urllib3 import ProxyManager

from leeward._http import backoff_s, connections


@pytest.mark.parametrize(
    ("url", "through_proxy"),
    [
        ("http://other.example:9090", True),
        ("http://prom.example:9090", False),
        ("http://prom.example:9091", True),
        ("http://user:password@prom.example:9090/path", False),
        ("http://any.example", False),
        ("http://any.example:9090", False),
        ("http://below.any.example:9090", False),
        ("https://other.example", False),
    ],
)
def test_the_environment_names_the_proxy_and_the_servers_without_one(
    monkeypatch: pytest.MonkeyPatch, url: str, through_proxy: bool
) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "prom.example:9090, any.example")
    assert isinstance(connections(url), ProxyManager) == through_proxy


@pytest.mark.parametrize(
    ("first_s", "longest_s", "waits"),
    [
        (0.1, 10.0, [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0]),
        (1.0, 60.0, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]),
    ],
)
def test_waits_between_retries_double_up_to_the_longest(
    first_s: float, longest_s: float, waits: list[float]
) -> None:
    assert list(islice(backoff_s(first_s, longest_s), len(waits))) == waits
