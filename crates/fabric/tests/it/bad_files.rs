//! Errors for invalid cluster files: one line with file, line, field and the expected value. The table in the
//! snapshot is the specification.

use leeward_fabric::Cluster;
use leeward_fabric::input::read_text;

/// Fields that complete a text to a valid file.
const REST: &str = "hosts_per_rack: 2\nnic: 1Gbps\noversubscription: 2\n";

/// Largest number of characters of a text in the table.
const LONGEST: usize = 240;

/// Each text with its error.
fn table(title: &str, texts: impl IntoIterator<Item = String>) -> String {
    let mut table = format!("==== {title}\n");
    for text in texts {
        let error = match Cluster::from_text("c.yaml", &text) {
            Ok(_) => "NO ERROR".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(error.lines().count(), 1, "one line: {error:?}");
        let shown: String = text.replace(REST, "...").chars().take(LONGEST).collect();
        let shown: Vec<_> =
            shown.trim_end().lines().map(|line| line.replace(char::is_control, "?")).collect();
        table += &format!("{}\n=> {error}\n\n", shown.join("\n"));
    }
    table
}

/// Texts followed by the rest of a valid file.
fn with_rest<const N: usize>(texts: [&str; N]) -> impl Iterator<Item = String> {
    texts.into_iter().map(|text| format!("{text}\n{REST}"))
}

fn alone<const N: usize>(texts: [&str; N]) -> impl Iterator<Item = String> {
    texts.into_iter().map(str::to_owned)
}

#[test]
fn invalid_cluster_texts_are_rejected() {
    let texts = [
        "",
        "# nothing but a comment",
        "racks",
        "- racks: 2",
        "racks: [1, 2",
        "racks: 2\n\tnic: 1Gbps",
        "racks: 2\n  nic: 1Gbps",
        "racks: \"2",
        "racks: *shelf",
        "racks: &x [*x]",
        "racks: 2\nracks: 3",
        "racks: 2\n---\nracks: 3",
        "racks: 2\n\u{0}",
        "? [a, b]\n: 2",
    ];
    insta::assert_snapshot!(table("not a cluster file", alone(texts)));
}

#[test]
fn a_wrong_value_is_named_with_its_place_and_the_expected_one() {
    let texts = with_rest([
        "rakcs: 2",
        "racks: [{rakc: 2}]",
        "racks: none",
        "racks: 2.5",
        "racks: -3",
        "racks: 0",
        "racks: '0'",
        "racks: 4000000000",
        "racks: 99999999999999999999999",
        "racks: {count: 2}",
        "racks: []",
        "racks: [a, b]",
        "racks: 2\nshape: ring",
        "racks: 2\nshape: [tree]",
        "racks: [{kind: fast}]",
        "racks: 2\nname: [a]",
        "racks: 2\ndevices: {read: 1MB/s}",
        "racks: 2\ndevices: [disk]",
        "racks: 2\ndevices: [{read: 50MB/s}]",
        "racks: 2\ndevices: [{read: 50, write: 50MB/s}]",
        "racks: 2\ndevices: [{read: 0MB/s, write: 50MB/s}]",
        "racks: 2\ndevices: [{read: , write: 50MB/s}]",
        "racks: 2\ndevices: [{read: 50MB/s, write: 50MB/s, capacity: 4}]",
        "racks: 2\ndevices: [{read: 50MB/s, write: 50MB/s, capacity: -4TB}]",
        "racks: 2\ndevices: [{read: 50MB/s, write: 50MB/s, capacity: 0B}]",
        "name: \"\\e[31mred\"\nracks: 2",
        "racks: 2\npriorities: 0",
        "racks: 2\npriorities: 300",
        "racks: [{hosts: [{name: a b}]}]",
        "racks: [{hosts: [{name: 'a:egress'}]}]",
        "racks: [{hosts: [{name: ''}]}]",
        "racks: [{hosts: [{name: }]}]",
        "racks: [{hosts: [{nic: 1Gbps}]}]",
        "racks:\n  - name: a\n    hosts: 0",
        "racks:\n  - name: a\n    link: 0bps",
        "racks:\n  - name: a\n    tags: fast",
        "racks: [{hosts: 3, nic: {up: 1Gbps}}]",
        "racks: [{hosts: 3, nic: {up: 1Gbps, down: 0Gbps}}]",
        "racks: [{hosts: 3, nic: [1Gbps]}]",
    ]);
    insta::assert_snapshot!(table("wrong values", texts));
}

#[test]
fn errors_about_rates_and_ratios_show_an_example() {
    let nics = ["1000", "1Gb", "fast", "-1Gbps", "0Gbps", "10gbps", "1e30Tbps", ".nan", "true", "''"];
    let nics = nics.into_iter().map(|nic| format!("nic: {nic}\nracks: 2"));
    let ratios = ["0", "-10", ".nan", ".inf", "10:1", "ten", "1e999", "[10]"];
    let ratios = ratios.into_iter().map(|ratio| format!("oversubscription: {ratio}\nracks: 2"));
    insta::assert_snapshot!(table("rates and ratios", nics.chain(ratios)));
}

#[test]
fn contradictions_are_rejected() {
    let host = "nic: 1Gbps\noversubscription: 2";
    let texts = alone([
        "racks: 2",
        "hosts_per_rack: 2",
        "racks: 2\nhosts_per_rack: 2",
        "racks: 2\nhosts_per_rack: 2\nnic: 1Gbps",
        "racks: 2\nhosts: 3",
        "racks: 4\npods: 2\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 2",
        "shape: hose\nnic: 1Gbps",
        "shape: hose\nhosts: 3",
        "shape: hose\nhosts: 3\nracks: 3\nnic: 1Gbps",
        "shape: hose\nhosts: 3\nnic: 1Gbps\noversubscription: 2",
        "shape: hose\nhosts: 3\nnic: 1Gbps\npair: 1Gbps",
        "shape: hose\nhosts: 3\nhosts_per_rack: 3\nnic: 1Gbps",
        "shape: hose\nnic: 1Gbps\nracks: [{hosts: 3}, {hosts: 2, link: 1Gbps}]",
        "shape: pipe\nhosts: 3",
        "shape: pipe\nhosts: 5000\npair: 1Gbps",
        "shape: pipe\nhosts: 3\nnic: 1Gbps\npair: 1Gbps",
        "shape: pipe\nhosts: [{name: a}, {name: b, nic: 1Gbps}]\npair: 1Gbps",
        "shape: pipe\nhosts: 2\npairs: [{from: h0, to: h1, rate: 1Gbps}]",
        "shape: pipe\nhosts: 2\npair: 1Gbps\npairs: [{from: h0, to: h2, rate: 1Gbps}]",
        "shape: pipe\nhosts: 2\npair: 1Gbps\npairs: [{from: h1, to: h1, rate: 1Gbps}]",
        "shape: pipe\nhosts: 2\npair: 0bps",
    ]);
    let trees = with_rest([
        "racks: 2\npair: 1Gbps",
        "racks: 2\npod_link: 1Gbps",
        "racks: 2\nrack_link: 1Gbps",
        "racks: 7\npods: 2\npod_oversubscription: 2",
        "racks: 2\npods: 4000000000\npod_oversubscription: 2",
        "racks: 4\npods: [{name: a}, {name: b, link: 1Gbps, oversubscription: 2}]\npod_link: 1Gbps",
        "racks: 4\npods: 2\npod_link: 1Gbps\npod_oversubscription: 2",
        "pods: [{name: a}]\npod_link: 1Gbps\nracks:\n  - pod: a\n  - pod: b",
        "pods: [{name: a}]\npod_link: 1Gbps\nracks:\n  - pod: a\n  - name: c",
        "pods: [{name: a}, {name: b}]\npod_link: 1Gbps\nracks:\n  - pod: a\n  - pod: a",
        "racks: [{link: 1Gbps, oversubscription: 2}]",
        "racks: [{count: 2, name: a}]",
        "racks: [{count: 2, hosts: [{name: a}]}]",
        "racks: [{count: 2000000}, {count: 2000000}]",
        "racks:\n  - {name: a}\n  - {name: b}\n  - {name: a}",
        "racks:\n  - {name: r1}\n  - {}",
        "racks: 2\npods: [{name: r1}]\npod_link: 1Gbps",
        "racks:\n  - hosts:\n      - name: x\n  - hosts:\n      - name: y\n      - name: x",
        "racks:\n  - hosts: [{name: r1h0}]\n  - hosts: 1",
        "racks: [{devices: [{read: 1MB/s, write: 1MB/s}, {name: disk0, read: 1MB/s, write: 1MB/s}]}]",
        "racks: 2\ndevices: [{name: uplink, read: 1MB/s, write: 1MB/s}]",
    ]);
    let no_hosts = format!("racks: [{{name: a}}]\n{host}");
    let steep = "racks: 2\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 1e12".to_owned();
    let flat = "racks:\n  - name: a\n    oversubscription: 1e-12\nhosts_per_rack: 2\nnic: 1Gbps".to_owned();
    let tags = format!(
        "racks: [{{tags: [{}]}}]\n{REST}",
        (0..65).map(|i| format!("t{i}")).collect::<Vec<_>>().join(",")
    );
    let texts = texts.chain(trees).chain([no_hosts, steep, flat, tags]);
    insta::assert_snapshot!(table("contradictions", texts));
}

#[test]
fn pairs_and_shared_links_that_fit_no_mesh_are_rejected() {
    let mesh = |text: &&str| format!("shape: hose\nhosts: 3\nnic: 1Gbps\n{text}");
    let texts = [
        "pairs: [{from: h0, to: h3, rate: 1Gbps}]",
        "pairs: [{from: h0, to: h0, rate: 1Gbps}]",
        "pairs:\n  - {from: h0, to: h1, rate: 1Gbps}\n  - {from: h0, to: h1, rate: 2Gbps}",
        "pairs: [{from: h0, to: h1, rate: 0bps}]",
        "shared_links: [{name: up, out_of: [h0]}]",
        "shared_links: [{rate: 1Gbps, out_of: [h0]}]",
        "shared_links: [{name: up, rate: 1Gbps}]",
        "shared_links: [{name: up, rate: 1Gbps, out_of: [h0], into: [h1]}]",
        "shared_links: [{name: up, rate: 1Gbps, out_of: []}]",
        "shared_links: [{name: up, rate: 1Gbps, out_of: [h0, h1, h2]}]",
        "shared_links: [{name: up, rate: 1Gbps, into: [h0, h0]}]",
        "shared_links: [{name: up, rate: 1Gbps, into: [h7]}]",
        "shared_links: [{name: up, rate: 1Gbps, paths: []}]",
        "shared_links: [{name: up, rate: 1Gbps, paths: [{from: h0, to: h0}]}]",
        "shared_links: [{name: up, rate: 1Gbps, paths: [{from: h0, to: h1}, {from: h0, to: h1}]}]",
        "shared_links: [{name: h1, rate: 1Gbps, out_of: [h0]}]",
        "shared_links: [{name: up, rate: 1Gbps, out_of: [h0]}, {name: up, rate: 1Gbps, into: [h0]}]",
        "shared_links: [{name: 'up:1', rate: 1Gbps, out_of: [h0]}]",
        "cross_traffic: [{link: h0, connections: 1}]",
        "cross_traffic: [{link: 'h0>h1', connections: 1}]",
        "cross_traffic: [{link: h0:egress}]",
        "cross_traffic: [{link: h0:egress, connections: 0}]",
        "cross_traffic: [{link: h0:egress, connections: -1}]",
        "cross_traffic: [{link: h0:egress, connections: .inf}]",
        "cross_traffic: [{link: h0:egress, connections: 1}, {link: h0:egress, connections: 2}]",
        "rtt: {rack: 1ms}",
        "rtt: {pod: 1ms}",
        "rtt: {network: 2min}",
        "pairs: [{from: h0, to: h1, rate: 1Gbps, rtt: 1h}]",
        "cost: -1",
        "cost: 1EUR",
    ];
    let others = [
        "racks: 2\nhosts_per_rack: 2\nnic: 1Gbps\nrack_link: 1Gbps\npairs: [{from: r0h0, to: r0h1, rate: 1Gbps}]",
        "racks: 2\nhosts_per_rack: 2\nnic: 1Gbps\nrack_link: 1Gbps\n\
         shared_links: [{name: up, rate: 1Gbps, out_of: [r0]}]",
        "shape: pipe\nhosts: 2\npair: 1Gbps\npairs: [{from: h0, to: h1, rate: 1Gbps, same_machine: true}]",
        "shape: hose\nhosts: 2\nnic: 1Gbps\npairs: [{from: h0, to: h1, rate: 1Gbps, same_machine: true}]",
        "shape: hose\nhosts: 2\nnic: 1Gbps\npairs: [{from: h0, to: h1, rate: 1Gbps, same_machine: true}, {from: h1, to: h0, rate: 1Gbps}]",
        "shape: hose\nnic: 1Gbps\nracks: [{name: a, hosts: [{name: a}, {name: b}]}, {hosts: 1}]\n\
         shared_links: [{name: up, rate: 1Gbps, out_of: [a]}]",
    ];
    let texts = texts.iter().map(mesh).chain(others.map(str::to_owned));
    insta::assert_snapshot!(table("pairs and shared links", texts));
}

#[test]
fn hostile_texts_are_rejected_at_once() {
    let bomb: String = (0..9)
        .map(|level| {
            let below = if level == 0 { "x".to_owned() } else { format!("*a{}", level - 1) };
            format!("a{level}: &a{level} [{}]\n", vec![below; 10].join(","))
        })
        .collect();
    let merges = "racks:\n  - &a {hosts: 2}\n".to_owned()
        + &format!("  - <<: [{}]\n", vec!["*a"; 1_000].join(", ")).repeat(300);
    let aliases =
        format!("racks:\n  - tags: &a [{}]\n", vec!["x"; 1000].join(",")) + &"  - tags: *a\n".repeat(20_000);
    let texts = [
        format!("racks: {}1{}", "[".repeat(100_000), "]".repeat(100_000)),
        format!("racks: {}1{}", "{a: ".repeat(60), "}".repeat(60)),
        format!(
            "racks:\n{}",
            (0..2_000).map(|depth| format!("{}-\n", " ".repeat(depth))).collect::<String>()
        ),
        format!("racks: {}", "9".repeat(1_000_000)),
        format!("{}: 2", "r".repeat(1_000_000)),
        format!("racks: [{{name: '{}'}}]", "\\n".repeat(100_000)),
        format!("racks: \"{}\"", "\\n".repeat(100)),
        format!("racks: 2\nnic: {}Gbps", "1".repeat(100_000)),
        format!(
            "racks: 4294967295\nhosts_per_rack: 4294967295\ndevices: [{}]",
            vec!["{read: 1MB/s, write: 1MB/s}"; 50].join(",")
        ),
        bomb,
        aliases,
        merges,
        format!("racks: 2\nhosts_per_rack: 4000000000\n{REST}").replace("hosts_per_rack: 2\n", ""),
        format!(
            "racks: 1\nhosts_per_rack: 4000000\ndevices: [{}]",
            vec!["{read: 1MB/s, write: 1MB/s}"; 50].join(",")
        ),
        format!(
            "racks: 1\nhosts_per_rack: 1\ndevices: [{}]",
            vec!["{read: 1MB/s, write: 1MB/s}"; 2_000].join(",")
        ),
    ];
    // The beginning of the first line identifies the text.
    let first = |text: &str| text.lines().next().unwrap_or_default().chars().take(40).collect::<String>();
    let errors = texts.map(|text| {
        (first(&text), Cluster::from_text("c.yaml", &text).map(|_| ()).map_err(|e| e.to_string()))
    });
    let mut table = String::new();
    for (text, error) in errors {
        table += &format!("{text}...\n=> {}\n\n", error.expect_err("an invalid text"));
    }
    insta::assert_snapshot!(table);
}

#[test]
fn an_unreadable_file_is_named_in_its_error() {
    let missing = Cluster::from_file("no/such/file.yaml").unwrap_err();
    assert_eq!(missing.to_string(), "no/such/file.yaml: no such file");
    let path = std::env::temp_dir().join(format!("leeward-{}.yaml", std::process::id()));
    std::fs::write(&path, b"racks: 2\nname: \xff\n").expect("the temporary folder can be written");
    let path = path.to_string_lossy();
    let result = read_text(&path).map_err(|error| error.to_string());
    std::fs::remove_file(&*path).expect("the file was written above");
    assert_eq!(result, Err(format!("{path}:2: not UTF-8 text")));
}
