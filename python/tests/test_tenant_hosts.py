"""`leeward tenant run`: hosts files and addresses."""

from pathlib import Path

import pytest

from leeward import InputError, tenant


def test_a_hosts_file_has_defaults_for_all_hosts(tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(
        "run: ssh -p 22 {name}\ncpus: 4\nhosts:\n"
        "  - {name: a, address: 10.0.0.1}\n  - {name: b, address: '10.0.0.2:7700', cpus: 8, run: ''}\n"
    )
    a, b = tenant.read_hosts(file)
    assert (a.run, a.cpus, a.probe) == (("ssh", "-p", "22", "a"), "4", "10.0.0.1:7601")
    assert (b.run, b.cpus, b.probe) == ((), "8", "10.0.0.2:7700")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hosts: []", "hosts: expected a list of hosts"),
        ("hosts: [{name: a}]", "hosts[0]: expected the fields `name` and `address`"),
        ("hosts: [{name: a, address: b, cpu: 1}]", "hosts[0].cpu: unknown field; there are: address, cost"),
        ("hosts: [{name: a, address: b}]", "1 given: expected at least 2 hosts"),
        ("hosts: [{name: a, address: b}, {name: a, address: c}]", "`a`: two hosts have this name"),
        (
            'run: "\'"\nhosts: [{name: a, address: b}, {name: c, address: d}]',
            "run: `'`: No closing quotation",
        ),
        ("hosts: [", "hosts.yaml:1"),
        (
            "hosts: [{name: a, address: b}, {name: a/b, address: c}]",
            "hosts.yaml: hosts[1]: `a/b=c`: expected ADDRESS or NAME=ADDRESS",
        ),
        (
            "hosts: [{name: a, address: -oProxyCommand=x}]",
            "hosts.yaml: hosts[0]: `a=-oProxyCommand=x`: expected a host name or an IP address",
        ),
    ],
)
def test_invalid_hosts_files_are_named(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        tenant.read_hosts(file)
    assert expected in str(error.value)


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "10.0.0.1:7700", "vm-1.example.org", "fd00::1", "[fd00::1]:7700", "fe80::1%eth0"]
)
def test_host_names_and_ip_addresses_are_accepted(address: str) -> None:
    (host, _) = tenant.listed([f"a={address}", "b=10.0.0.9"])
    assert address in (host.address, f"{host.address}:7700", f"[{host.address}]:7700")


@pytest.mark.parametrize(
    "address",
    ["-v", "a b", "10.0.0.1 -v", "$(id)", "10.0.0.1:99999", "10.0.0.1:port", "fd00::x", "fe80::1%-v"],
)
def test_other_addresses_are_rejected(address: str) -> None:
    with pytest.raises(InputError, match="expected a host name or an IP address"):
        tenant.listed([f"a={address}", "b=10.0.0.9"])


def test_a_name_that_looks_like_an_option_is_rejected() -> None:
    with pytest.raises(InputError, match="hosts: `-v`: expected a name that does not begin with `-`"):
        tenant.listed(["-v=10.0.0.1", "b=10.0.0.2"], "ssh {name}")


def test_the_address_replaces_its_place_in_a_word() -> None:
    (host, _) = tenant.listed(["a=10.0.0.1", "b=10.0.0.2"], "sh -c 'ssh {address} \"$@\"' {name}")
    assert host.run == ("sh", "-c", 'ssh 10.0.0.1 "$@"', "a")
