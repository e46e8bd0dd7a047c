from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from leeward import Client
from leeward.client.snapshots import apply
from leeward.client.types import Snapshot

Serve = Callable[..., AbstractContextManager[str]]

CLUSTER = {
    "racks": 4,
    "hosts_per_rack": 3,
    "nic": "1Gbps",
    "oversubscription": 3,
    "devices": [{"read": "200MB/s", "write": "120MB/s"}],
}


def ask(client: Client, since: str | None = None) -> Snapshot:
    return client.snapshot(
        since=since,
        links=["link", "measured_bps", "until", "derived", "measured_steps", "pending_steps"],
        racks=["rack", "up_steps", "replicas"],
        hosts=["host", "draining", "ingress_steps"],
        devices=["device", "busy_steps", "until"],
        resolution=0.02,
    )


@pytest.fixture(scope="module")
def client(serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serve(tmp_path_factory.mktemp("service"), CLUSTER, "--interval", "1s") as url:
        yield Client(url)


def report(client: Client, random: Random) -> None:
    hosts = random.sample([f"r{rack}h{host}" for rack in range(4) for host in range(3)], 6)
    until = datetime.now(UTC)
    client.report(
        until - timedelta(seconds=1),
        until,
        links={f"{host}:ingress": random.uniform(0, 1e9) for host in hosts} | {"r0:uplink": 2e8},
        devices=[{"device": f"{host}:disk0", "busy": random.random()} for host in hosts],
        hosts={hosts[0]: {"draining": random.random() < 0.5}},
    )


def test_differences_applied_in_turn_give_the_whole_snapshot(client: Client) -> None:
    random, compared = Random(1), 0
    followed = ask(client)
    assert followed["since"] is None
    for number in range(30):
        report(client, random)
        whole = ask(client)
        difference = ask(client, followed["id"])
        assert difference["since"] == followed["id"], number
        assert "link" not in difference["links"]
        followed = apply(followed, difference)
        # The service may have made a snapshot of its own between the two requests.
        if followed["id"] == whole["id"]:
            assert followed == whole
            compared += 1
    assert compared >= 10


def test_a_follower_yields_whole_snapshots_in_order(client: Client) -> None:
    random, snapshots = Random(2), client.follow_snapshots(links=["link", "measured_bps"], interval_s=0.1)
    seen: list[Snapshot] = []
    for _ in range(4):
        report(client, random)
        seen.append(next(snapshots))
    epochs = [snapshot["epoch"] for snapshot in seen]
    assert epochs == sorted(set(epochs))
    names = seen[0]["links"]["link"]
    assert all(snapshot["links"]["link"] == names for snapshot in seen)
    measured = [snapshot["links"]["measured_bps"][names.index("r0:uplink")] for snapshot in seen[1:]]
    assert measured == [200_000_000] * 3


def test_a_difference_from_another_snapshot_is_an_error(client: Client) -> None:
    base = client.snapshot(racks=["rack", "hosts"])
    difference = client.snapshot(racks=["rack", "hosts"], since=base["id"])
    assert apply(base, difference)["racks"] == base["racks"]
    other = base | {"id": "other"}
    with pytest.raises(ValueError, match="not from `other`"):
        apply(other, difference)
