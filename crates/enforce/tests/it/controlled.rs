//! Promises of a controller on a kernel: applied, stated for acknowledgements, changed by another hand, released.

use leeward_enforce::{Arguments, Enforcer, Event, Settings};
use leeward_lease::{Addresses, Received};
use leeward_promises::bodies::{AcknowledgedBody, AppliedWord};
use serde_json::{Value, json};

use crate::host::{ADDRESSES, DEVICE, HOST, Host, RATE};

/// Settings of an enforcer of a controller, which the test speaks for.
fn settings(host: &Host) -> Settings {
    let settings = Settings::new(Arguments {
        controllers: vec!["http://127.0.0.1:1".to_owned()],
        host: Some(HOST.to_owned()),
        interfaces: vec![DEVICE.to_owned()],
        rate: Some(RATE.to_owned()),
        ..Arguments::default()
    });
    Settings { state: host.folder.path().to_path_buf(), ..settings.expect("valid settings") }
}

/// Promises for a host. The burst of `long` is beyond what `tc` takes.
fn received(version: u64, promises: &[(&str, &str, u32)]) -> Received {
    let promise = |&(workload, peer, priority): &(&str, &str, u32)| -> Value {
        let burst = if workload == "long" { 5e9 } else { 64e3 };
        let addresses = if peer.contains('.') { vec![peer] } else { Vec::new() };
        json!({
            "workload": workload, "stage": "network-in", "peer": peer, "peer_addresses": addresses,
            "priority": priority, "limits": [{ "rate": 1e6, "burst": burst }],
        })
    };
    let net: Vec<Value> = promises.iter().map(promise).collect();
    let promises = json!({
        "enforcer": "net@r0h0", "kind": "net", "host": HOST, "set": "1", "version": version, "lease_s": 15.0, "net": net,
        "nfs": [],
    });
    Received::new(serde_json::from_value(promises).expect("promises"), Addresses::default())
}

fn shown(bodies: &[AcknowledgedBody]) -> Vec<(&str, AppliedWord)> {
    bodies.iter().map(|body| (body.workload.as_str(), body.state)).collect()
}

#[test]
fn promises_come_and_go_and_nothing_is_left_without_a_lease() {
    let Some(host) = Host::up() else { return };
    let before = host.rules();
    let settings = settings(&host);
    let (mut enforcer, events) = host.at(|| Enforcer::new(settings)).expect("valid settings");
    assert!(events.is_empty() && host.at(|| enforcer.turn()).is_empty(), "nothing before the first promises");
    assert_eq!(host.rules(), before);
    assert!(host.at(|| enforcer.report()).is_empty());
    let own: Vec<String> = host.at(|| enforcer.addresses()).iter().map(ToString::to_string).collect();
    assert_eq!(own, [ADDRESSES[0]]);
    let promises = [("mail", ADDRESSES[1], 0), ("long", ADDRESSES[2], 9), ("lost", "localhost", 1)];
    host.at(|| enforcer.apply(&received(3, &promises)));
    let bodies = host.at(|| enforcer.report());
    let refused = AppliedWord::Refused;
    assert_eq!(shown(&bodies), [("long", refused), ("lost", refused), ("mail", AppliedWord::Applied)]);
    assert!(bodies[0].detail.as_ref().is_some_and(|why| why.contains("5000000000 bytes")), "{bodies:?}");
    // Another hand changes the class of a workload: stated once, and mended.
    host.shell(HOST, "tc class change dev eth0 parent 7ee0:1 classid 7ee0:10 htb rate 8bit ceil 1mbit");
    let lines: Vec<String> = host.at(|| enforcer.turn()).iter().map(Event::to_string).collect();
    assert_eq!(lines, ["eth0: drift: class 7ee0:10; mended"]);
    let bodies = host.at(|| enforcer.report());
    assert_eq!(bodies[2].state, AppliedWord::Drifted);
    assert_eq!(bodies[2].detail.as_deref(), Some("eth0: class 7ee0:10"));
    host.at(|| enforcer.turn());
    assert_eq!(host.at(|| enforcer.report())[2].state, AppliedWord::Applied);
    // Packets count.
    let (sender, receiver) = (host.socket(0), host.socket(1));
    sender.send_to(&[0; 1000], (ADDRESSES[1], 5000)).expect("a route");
    assert_eq!(receiver.recv(&mut [0; 2000]).ok(), Some(1000));
    host.at(|| enforcer.turn());
    assert_eq!(host.at(|| enforcer.report())[2].counters.bytes, 1042);
    // The lease ends.
    let lines: Vec<String> = host.at(|| enforcer.release()).iter().map(Event::to_string).collect();
    assert_eq!((lines, host.rules()), (vec!["eth0: undone".to_owned()], before.clone()));
    assert!(host.at(|| enforcer.turn()).is_empty() && host.at(|| enforcer.report()).is_empty());
    assert_eq!(host.rules(), before, "a turn without promises changes nothing");
    // A controller answers again.
    host.at(|| enforcer.apply(&received(4, &[("mail", ADDRESSES[1], 2)])));
    assert_eq!(shown(&host.at(|| enforcer.report())), [("mail", AppliedWord::Applied)]);
    host.at(|| enforcer.undo());
    assert_eq!(host.rules(), before);
}
