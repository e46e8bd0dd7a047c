//! Rules of a kernel: programmed, compared, mended and undone.

use std::collections::BTreeMap;

use leeward_enforce::{Event, undo};

use crate::host::{ADDRESSES, DEVICE, HOST, Host, promise, states};

const BUCKET: (f64, f64) = (1e6, 64e3);

#[test]
fn an_undone_interface_is_as_it_was_and_a_second_enforcer_is_refused() {
    let Some(host) = Host::up() else { return };
    let before = host.rules();
    host.write(vec![
        promise("one", ADDRESSES[1], Some(0), &[BUCKET]),
        promise("two", ADDRESSES[2], Some(6), &[BUCKET, (1e5, 1e6)]),
    ]);
    let mut enforcer = host.enforcer();
    let lines = host.turn(&mut enforcer);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].starts_with("eth0: enforces 2 workloads by 5 classes ("), "{lines:?}");
    assert_eq!(host.turn(&mut enforcer), [""; 0], "nothing changed");
    let status = host.status();
    assert!(status.is_enforced(), "{status:?}");
    let shown: Vec<_> =
        status.workloads.iter().map(|row| (row.class.as_deref(), row.dscp.as_deref())).collect();
    assert_eq!(shown, [(Some("7ee0:10"), Some("cs7")), (Some("7ee0:12"), Some("cs1"))]);
    let settings = host.settings();
    let error = host.at(|| leeward_enforce::Enforcer::new(settings)).expect_err("a lock");
    assert!(format!("{error:?}").contains("Running"), "{error:?}");
    let events = host.at(|| enforcer.undo());
    assert!(matches!(&events[..], [Event::Undone { exists: true, .. }]), "{events:?}");
    assert_eq!(host.rules(), before);
}

#[test]
fn a_killed_enforcer_is_taken_over_or_undone() {
    let Some(host) = Host::up() else { return };
    let before = host.rules();
    host.write(vec![promise("one", ADDRESSES[1], Some(0), &[BUCKET])]);
    let mut killed = host.enforcer();
    host.turn(&mut killed);
    drop(killed);
    assert_ne!(host.rules(), before);
    let mut next = host.enforcer();
    let classes = host.shell(HOST, "tc class show dev eth0");
    let lines = host.turn(&mut next);
    assert!(lines[0].starts_with("eth0: enforces 1 workloads"), "{lines:?}");
    assert_eq!(host.shell(HOST, "tc class show dev eth0"), classes, "the classes stay");
    drop(next);
    let settings = host.settings();
    let mut lines = Vec::new();
    let log = |event: &Event| {
        lines.push(event.to_string());
        Ok::<(), ()>(())
    };
    host.at(|| undo(&settings, log)).expect("everything can be undone");
    assert_eq!(lines, ["eth0: undone"]);
    assert_eq!(host.rules(), before);
    let mut again = Vec::new();
    host.at(|| {
        undo(&settings, |event: &Event| {
            again.push(event.to_string());
            Ok::<(), ()>(())
        })
    })
    .expect("nothing is no error");
    assert_eq!(again, ["nothing to undo"]);
}

#[test]
fn changes_by_another_hand_are_named_and_mended_or_only_reported() {
    let Some(host) = Host::up() else { return };
    host.write(vec![
        promise("one", ADDRESSES[1], Some(0), &[BUCKET]),
        promise("two", ADDRESSES[2], Some(1), &[BUCKET, (1e5, 1e6)]),
    ]);
    let mut enforcer = host.enforcer();
    host.turn(&mut enforcer);
    let table = format!("netdev leeward-{DEVICE}");
    for (script, difference) in [
        ("tc class change dev eth0 classid 7ee0:10 htb rate 8bit ceil 1mbit".to_owned(), "class 7ee0:10"),
        ("tc class del dev eth0 classid 7ee0:10".to_owned(), "no class 7ee0:10"),
        (
            "tc class add dev eth0 parent 7ee0:1 classid 7ee0:99 htb rate 1mbit".to_owned(),
            "an unknown class 7ee0:99",
        ),
        ("tc qdisc del dev eth0 root".to_owned(), "root qdisc, no class 7ee0:1, no class 7ee0:2, and 3 more"),
        (format!("nft flush chain {table} leeward"), "rules of nftables"),
        (
            format!(
                "nft 'delete element {table} class_v4 {{ {} . {} : 7ee0:10 }}'",
                ADDRESSES[0], ADDRESSES[1]
            ),
            "marks of packets",
        ),
        (format!("nft delete table {table}"), "marks of packets"),
        (
            "nft flush ruleset; tc qdisc del dev eth0 root".to_owned(),
            "root qdisc, no class 7ee0:1, no class 7ee0:2",
        ),
    ] {
        host.shell(HOST, &script);
        // A class without packets does no harm.
        assert!(!host.status().is_enforced() || difference.starts_with("an unknown class"), "{script}");
        let lines = host.turn(&mut enforcer);
        assert_eq!(lines.len(), 1, "{script}: {lines:?}");
        let named =
            lines[0].starts_with(&format!("eth0: drift: {difference}")) && lines[0].ends_with("; mended");
        assert!(named, "{script}: {lines:?}");
        assert!(host.status().is_enforced(), "{script}: {:?}", host.status());
        assert_eq!(host.turn(&mut enforcer), [""; 0], "{script}");
    }
    host.at(|| enforcer.undo());
    drop(enforcer);
    let settings = leeward_enforce::Settings { mends: false, ..host.settings() };
    let (mut enforcer, _) = host.at(|| leeward_enforce::Enforcer::new(settings)).expect("a valid file");
    host.turn(&mut enforcer);
    host.shell(HOST, "tc class change dev eth0 classid 7ee0:10 htb rate 8bit ceil 1mbit");
    assert_eq!(host.turn(&mut enforcer), ["eth0: drift: class 7ee0:10; not mended"]);
    assert_eq!(host.turn(&mut enforcer), [""; 0], "a lasting drift is reported once");
    assert_eq!(states(&host.status()), BTreeMap::from([("one", "missing"), ("two", "enforced")]));
    host.at(|| enforcer.undo());
}

#[test]
fn a_qdisc_of_another_owner_is_left_alone() {
    let Some(host) = Host::up() else { return };
    host.write(vec![promise("one", ADDRESSES[1], Some(0), &[BUCKET])]);
    for foreign in ["tbf rate 1gbit burst 64k limit 1m", "handle 7ee0: htb", "handle 1: htb default 1"] {
        host.shell(HOST, &format!("tc qdisc add dev eth0 root {foreign}"));
        let before = host.rules();
        let mut enforcer = host.enforcer();
        let lines = host.turn(&mut enforcer);
        assert!(lines[0].starts_with("error: eth0: the root qdisc `"), "{lines:?}");
        assert!(lines[0].contains("belongs to another owner and is left alone"), "{lines:?}");
        assert!(!enforcer.is_enforcing());
        assert_eq!(host.turn(&mut enforcer), [""; 0], "it is reported once");
        assert_eq!(host.rules(), before);
        host.shell(HOST, "tc qdisc del dev eth0 root");
        let lines = host.turn(&mut enforcer);
        assert!(lines[0].starts_with("eth0: enforces 1 workloads"), "{lines:?}");
        host.at(|| enforcer.undo());
    }
}

#[test]
fn an_interface_that_goes_is_reported_and_programmed_when_it_is_back() {
    let Some(host) = Host::up().map(|host| host.with_interface("v0")) else { return };
    let add = "ip link add v0 type veth peer name v1; ip addr add 10.9.0.1/24 dev v0; ip link set v0 up";
    host.shell(HOST, add);
    host.write(vec![promise("one", ADDRESSES[1], Some(0), &[BUCKET])]);
    let mut enforcer = host.enforcer();
    let lines = host.turn(&mut enforcer);
    assert_eq!(lines.iter().filter(|line| line.contains("enforces 1 workloads")).count(), 2, "{lines:?}");
    host.shell(HOST, "ip link del v0");
    assert_eq!(host.turn(&mut enforcer), ["v0: the interface is gone"]);
    assert_eq!(host.turn(&mut enforcer), [""; 0]);
    assert!(enforcer.is_enforcing());
    host.shell(HOST, add);
    let lines = host.turn(&mut enforcer);
    assert!(lines[0].starts_with("v0: enforces 1 workloads"), "{lines:?}");
    host.shell(HOST, "ip link del v0");
    let events: Vec<String> = host.at(|| enforcer.undo()).iter().map(Event::to_string).collect();
    assert_eq!(events, ["eth0: undone", "v0: the interface is gone; its table is deleted"]);
    assert_eq!(host.shell(HOST, "nft list tables"), "");
}

#[test]
fn packets_have_the_dscp_of_their_priority_in_both_families() {
    let Some(host) = Host::up() else { return };
    for (machine, device, address) in [
        ("r0h0", "eth0", "fd00:0::2"),
        ("r0", "h0", "fd00:0::1"),
        ("r0h1", "eth0", "fd00:1::2"),
        ("r0", "h1", "fd00:1::1"),
    ] {
        host.shell(
            machine,
            &format!(
                "sysctl -qw net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.{device}.disable_ipv6=0 \
                 net.ipv6.conf.all.forwarding=1; ip -6 addr add {address}/64 dev {device} nodad"
            ),
        );
    }
    host.shell("r0h0", "ip -6 route add default via fd00:0::1");
    host.shell("r0h1", "ip -6 route add default via fd00:1::1");
    // Routers answer for their neighbours only after some seconds.
    host.shell("r0h0", "ping -6 -q -c 1 -w 20 fd00:1::2");
    host.write(vec![
        promise("four", ADDRESSES[1], Some(0), &[BUCKET]),
        promise("six", "fd00:1::2", Some(2), &[BUCKET]),
    ]);
    let mut enforcer = host.enforcer();
    let lines = host.turn(&mut enforcer);
    assert!(lines[0].starts_with("eth0: enforces 2 workloads"), "{lines:?}");
    count(&host, "r0h1", "meta l4proto udp ip dscp cs7");
    count(&host, "r0h1", "meta l4proto udp ip6 dscp cs5");
    count(&host, "r0h2", "meta l4proto udp ip dscp cs0");
    let send = |address: &'static str| {
        let bind = if address.contains(':') { "[::]:0" } else { "0.0.0.0:0" };
        host.at(|| {
            let socket = std::net::UdpSocket::bind(bind).expect("a port");
            for _ in 0..10 {
                socket.send_to(&[0; 100], (address, 9)).expect("a route");
            }
        });
    };
    [ADDRESSES[1], "fd00:1::2", ADDRESSES[2]].into_iter().for_each(send);
    std::thread::sleep(std::time::Duration::from_secs(1));
    let seen = host.shell("r0h1", "nft list table inet seen");
    assert_eq!(seen.matches("counter packets 10 ").count(), 2, "{seen}");
    let seen = host.shell("r0h2", "nft list table inet seen");
    assert_eq!(seen.matches("counter packets 10 ").count(), 1, "{seen}");
    let rows = host.status().workloads;
    assert!(rows.iter().all(|row| row.packets.is_some_and(|packets| packets >= 10)), "{rows:?}");
    host.at(|| enforcer.undo());
}

/// Counts packets that a host receives.
fn count(host: &Host, receiver: &str, rule: &str) {
    host.shell(
        receiver,
        &format!(
            "nft add table inet seen; nft 'add chain inet seen c {{ type filter hook input priority 0; }}'; \
             nft add rule inet seen c {rule} counter"
        ),
    );
}

#[test]
fn other_packets_keep_their_dscp_or_lose_it() {
    let Some(host) = Host::up() else { return };
    host.write(vec![promise("one", ADDRESSES[1], Some(0), &[BUCKET])]);
    count(&host, "r0h2", "meta l4proto icmp ip dscp ef");
    let ping = format!("ping -q -c 3 -i 0.01 -Q 0xb8 {}", ADDRESSES[2]);
    for clears in [false, true] {
        let settings = leeward_enforce::Settings { clears, ..host.settings() };
        let (mut enforcer, _) = host.at(|| leeward_enforce::Enforcer::new(settings)).expect("a valid file");
        host.turn(&mut enforcer);
        assert!(enforcer.is_enforcing());
        host.shell(HOST, &ping);
        let seen = host.shell("r0h2", "nft list table inet seen");
        assert!(seen.contains("counter packets 3 "), "{clears}: {seen}");
        host.at(|| enforcer.undo());
    }
}
