//! Workloads of a server from an SLO file, a cluster file and a file of addresses.

use std::fs;
use std::path::Path;

use leeward_lease::Addresses;
use leeward_nfs::workload_file::{ServerWorkloads, Sources};
use leeward_shaping::OverLimit;

const CLUSTER: &str = "racks: 1\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 4Gbps\n\
                       devices: [{name: ssd, read: 450MB/s, write: 330MB/s}]\n";
const WORKLOADS: &str = "\
workloads:
  - name: mail
    client: r0h0
    server: r0h3
    slo: {percentile: 99, latency: 50ms}
    unloaded: 1ms
    priority: 3
    curves: {storage: [{rate: 10%, burst: 5ms}]}
    limits: {storage: [{rate: 20%, burst: 8ms}, {rate: 50%, burst: 2ms}]}
  - name: web
    client: r0h0
    server: r0h3
    unloaded: 1ms
    curves: {storage: [{rate: 1%, burst: 1ms}]}
  - name: elsewhere
    client: r0h1
    server: r0h2
    unloaded: 1ms
    curves: {storage: [{rate: 1%, burst: 1ms}]}
  - name: link
    client: r0h1
    server: r0h3
    stages: [network-in]
    curves: {network-in: [{rate: 1MB/s, burst: 64KiB}]}
";
const ADDRESSES: &str = "address,host\n10.0.0.1,r0h0\n10.0.0.2,r0h1\n10.0.0.9,web\n";

/// Reads files with these contents.
fn read(
    workloads: &str,
    server: Option<&str>,
    exports: &[(String, usize)],
) -> Result<ServerWorkloads, String> {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let (workloads, cluster) = (write("w.yaml", workloads), write("cluster.yaml", CLUSTER));
    let addresses = Addresses::read(Some(&write("names.csv", ADDRESSES))).unwrap();
    let sources = Sources {
        workloads: &workloads,
        cluster: Some(&cluster),
        server,
        exports,
        over: None,
        has_device: false,
    };
    let base = format!("{}/", folder.path().display());
    sources.read(&addresses).map_err(|error| error.to_string().replace(&base, ""))
}

#[test]
fn workloads_of_the_server_have_their_priorities_limits_and_clients() {
    for server in ["r0h3", "r0h3:ssd"] {
        let read = read(WORKLOADS, Some(server), &[("web".to_owned(), 1)]).unwrap();
        let names: Vec<&str> = read.entries.iter().map(|entry| entry.workload.name.as_str()).collect();
        assert_eq!(names, ["mail", "web"]);
        let [mail, web] = &read.entries[..] else { panic!("two workloads") };
        assert_eq!((mail.workload.priority, mail.export, web.export), (3, None, Some(1)));
        assert!(web.workload.priority > 3, "best effort is last");
        let limits: Vec<(f64, f64)> =
            mail.workload.limits.iter().map(|bucket| (bucket.rate(), bucket.burst())).collect();
        assert_eq!(limits, [(0.5, 0.002), (0.2, 0.008)]);
        // Without limits of its own, a workload has its curve with the margin of 10 %.
        let curve = web.workload.limits[0];
        assert!((curve.rate() - 0.011).abs() < 1e-12 && (curve.burst() - 0.0011).abs() < 1e-12);
        assert_eq!(mail.workload.slo.map(|slo| slo.percentile), Some(99.0));
        assert_eq!(mail.clients, ["10.0.0.1".parse().unwrap()]);
        assert_eq!(web.clients, ["10.0.0.9".parse().unwrap()], "the workload has an address of its own");
        assert!(read.device.is_none());
        let [link, over] = &read.notes[..] else { panic!("two notes: {:?}", read.notes) };
        assert_eq!(link, "link: it has no storage stage, so its requests are best effort");
        assert!(over.starts_with("requests over a limit are demoted, as neither"), "{over}");
        assert!(read.entries.iter().all(|entry| entry.workload.over == OverLimit::Demoted));
    }
}

#[test]
fn a_file_may_hold_requests_over_the_limits() {
    let held = format!("over: {{storage: held}}\n{WORKLOADS}");
    let ServerWorkloads { entries, notes, .. } = read(&held, Some("r0h3"), &[]).unwrap();
    assert!(entries.iter().all(|entry| entry.workload.over == OverLimit::Held));
    assert!(notes.iter().all(|note| !note.contains("demoted")), "{notes:?}");
    let network = format!("over: {{network-in: held}}\n{WORKLOADS}");
    let entries = read(&network, Some("r0h3"), &[]).unwrap().entries;
    assert!(entries.iter().all(|entry| entry.workload.over == OverLimit::Demoted));
}

#[test]
fn a_file_with_traces_names_its_device() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/slo");
    let [workloads, cluster] =
        ["w.yaml", "cluster.yaml"].map(|name| examples.join(name).display().to_string());
    let folder = tempfile::tempdir().unwrap();
    let names = folder.path().join("names.csv");
    let rows: String = (0..8).map(|host| format!("10.0.0.{host},r0h{host}\n")).collect();
    fs::write(&names, format!("address,host\n{rows}")).unwrap();
    let addresses = Addresses::read(Some(&names.display().to_string())).unwrap();
    let sources = Sources {
        workloads: &workloads,
        cluster: Some(&cluster),
        server: None,
        exports: &[],
        over: None,
        has_device: false,
    };
    let read = sources.read(&addresses).unwrap();
    assert_eq!(read.entries.len(), 7);
    assert_eq!(read.device.map(|(name, _)| name).as_deref(), Some("ssd.json"));
    assert!(read.entries.iter().all(|entry| !entry.workload.limits.is_empty()));
}

#[test]
fn a_decided_file_needs_no_cluster_and_its_device_only_without_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let workloads = write(
        "packed.yaml",
        "device: absent.json\nworkloads:\n  - {name: mail, client: r0h0, server: 'r0h3:ssd', trace: mail.csv, \
         slo: {percentile: 99, latency: 50ms}, priority: 2, limits: {storage: [{rate: 20%, burst: 8ms}]}}\n",
    );
    let addresses = Addresses::read(Some(&write("names.csv", ADDRESSES))).unwrap();
    let read = |has_device: bool| {
        let sources = Sources {
            workloads: &workloads,
            cluster: None,
            server: None,
            exports: &[],
            over: Some(OverLimit::Held),
            has_device,
        };
        sources.read(&addresses)
    };
    let error = read(false).expect_err("an error").to_string();
    assert!(error.contains("absent.json"), "{error}");
    let read = read(true).unwrap();
    let [mail] = &read.entries[..] else { panic!("one workload") };
    assert_eq!((mail.workload.priority, mail.workload.over), (2, OverLimit::Held));
    assert_eq!(mail.clients, ["10.0.0.1".parse().unwrap()]);
    assert!(read.device.is_none() && read.notes.is_empty(), "{:?}", read.notes);
}

#[test]
fn errors_name_the_option_or_the_field() {
    let cases = [
        (
            read(WORKLOADS, None, &[]),
            "--host: missing; expected one of the servers of w.yaml: r0h2:ssd, r0h3:ssd",
        ),
        (read(WORKLOADS, Some("r0h0"), &[]), "w.yaml: no workload has its volume at `r0h0`"),
        (
            read(WORKLOADS, Some("r0h2"), &[("mail".to_owned(), 0)]),
            "--workload: `mail`: w.yaml has no such workload at r0h2",
        ),
        (
            read(
                &WORKLOADS.replace(
                    "curves: {storage: [{rate: 1%, burst: 1ms}]}",
                    "curves: {storage: [{rate: 0%, burst: 1ms}]}",
                ),
                Some("r0h3"),
                &[],
            ),
            "w.yaml:",
        ),
    ];
    for (result, expected) in cases {
        let error = result.expect_err("an error");
        assert!(error.starts_with(expected), "{error}");
    }
}
