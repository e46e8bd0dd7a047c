"""HTTP requests of the package: proxies."""

import pytest
from urllib3 import ProxyManager

from leeward._http import connections


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
