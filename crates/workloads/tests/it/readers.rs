//! External files: valid ones are read, and all others are rejected with the location of the error.

use std::path::PathBuf;
use std::sync::Arc;

use leeward_fabric::input::{Files, Text};
use leeward_testing::clusters::cluster;
use leeward_workloads::Inputs;
use proptest::prelude::*;

use crate::support::{VALID, check, gzip, read, source, tree};
use crate::tables::{Broken, Memory};

const HORIZON: f64 = 100.0;

/// Table of the errors of each of `texts` in place of a valid file.
fn table(settings: &str, texts: &[&[u8]]) -> String {
    let (source, cluster) = (source(settings), tree(3, 2));
    let mut table = String::new();
    for bytes in texts {
        let read = read(&source, bytes, &cluster, 0, HORIZON);
        let read =
            read.map_or_else(|error| error.to_string(), |loaded| format!("read: {}", loaded.provenance));
        table += &format!("{:?}\n    {read}\n", String::from_utf8_lossy(bytes));
    }
    table
}

#[test]
fn good_files_are_read() {
    let mut output = String::new();
    for (settings, text) in VALID {
        for bytes in
            [text.as_bytes().to_vec(), gzip(text.as_bytes()), text.replace('\n', "\r\n").into_bytes()]
        {
            let loaded = read(&source(settings), &bytes, &tree(3, 2), 0, HORIZON).expect("a valid file");
            check(&loaded.workload, &tree(3, 2), HORIZON);
            assert!(output.ends_with(&(loaded.provenance.clone() + "\n")) || bytes == text.as_bytes());
            if bytes == text.as_bytes() {
                output += &(loaded.provenance + "\n");
            }
        }
    }
    insta::assert_snapshot!(output);
}

#[test]
fn a_bad_file_of_any_kind_has_an_error_with_its_line() {
    let long = [b"3 1\n".as_slice(), &vec![b'1'; 2 << 20]].concat();
    let mut bad_sum = gzip(b"3 1\n1 0 1 0 1 1:1\n");
    let end = bad_sum.len();
    bad_sum[end - 8] ^= 1;
    let trailing = [gzip(b"3 1\n1 0 1 0 1 1:1\n"), b"and more".to_vec()].concat();
    let (source, cluster) = (source(VALID[0].0), tree(3, 2));
    let mut table = String::new();
    for (what, bytes) in [
        ("empty", b"".as_slice()),
        ("only empty lines", b"\n\r\n \n"),
        ("not UTF-8", b"3 1\n1 0 1 \xff 1 1:1\n"),
        ("one long line", &long),
        ("gzip with a wrong checksum", &bad_sum),
        ("gzip with something behind it", &trailing),
    ] {
        table += &format!("{what}: {}\n", read(&source, bytes, &cluster, 0, HORIZON).expect_err(what));
    }
    insta::assert_snapshot!(table);
}

#[test]
fn bad_coflow_files_have_errors_with_line_and_field() {
    insta::assert_snapshot!(table(
        VALID[0].0,
        &[
            b"3\n",
            b"three 1\n",
            b"0 0\n",
            b"4 1\n1 0 1 0 1 1:1\n",
            b"99999999999 1\n",
            b"3 1 1\n",
            b"3 2\n1 0 1 0 1 1:1\n",
            b"3 1\n1\n",
            b"3 1\n1 0 1 0 1 1:1\n2 0 1 0 1 1:1\n",
            b"3 1\n1 soon 1 0 1 1:1\n",
            b"3 1\n1 NaN 1 0 1 1:1\n",
            b"3 1\n1 -5 1 0 1 1:1\n",
            b"3 2\n1 2000 1 0 1 1:1\n\n2 1000 1 0 1 1:1\n",
            b"3 1\n1 0 2 0 1\n",
            b"3 1\n1 0 1 3 1 1:1\n",
            b"3 1\n1 0 1 0 1 1\n",
            b"3 1\n1 0 1 0 1 1:-1\n",
            b"3 1\n1 0 1 0 1 1:inf\n",
            b"3 1\n1 0 1 0 1 1:1e300\n",
            b"3 1\n1 0 1 0 1 1:1 2:2\n",
            b"3 1\n1 0 0 1 1:1\n",
            b"3 1\n1 0 99999999999999999999 0 1 1:1\n",
            b"3 1\n1 0 18446744073709551615 0 1 1:1\n",
            b"3 1\n1 0 0 0\n",
        ]
    ));
}

#[test]
fn bad_swim_files_have_errors_with_line_and_field() {
    insta::assert_snapshot!(table(
        VALID[1].0,
        &[
            b"job0\t1\t1\t500\t20\n",
            b"job0 1 1 500 20 1000\n",
            b"job0\t1\t1\t500\t20\t-1000\n",
            b"job0\t1\t1\t500\t20\tNaN\n",
            b"job0\t1\t1\t500\t20\t1e30\n",
            b"job0\t1\t1\t500\t20\t9e15\n",
            b"job0\tone\t1\t500\t20\t1000\n",
            b"job0\t5\t1\t500\t20\t1000\njob1\t4\t1\t500\t20\t1000\n",
            b"job0\t5\tx\t500\t20\t1000\n",
            b"job0\t5\t1\t5oo\t20\t1000\n",
        ]
    ));
}

#[test]
fn bad_flow_lists_have_errors_with_line_and_field() {
    const HEADER: &str = "t_arrival_s,src,dst,size_bytes\n";
    let rows = ["0,r0h0", "0,r0h0,nowhere,1", "0,6,r0h0,1", "-1,0,1,1", "0,0,1,1e16", "0,0,1,", "0,0,1,nan"];
    let mut texts: Vec<_> = rows.iter().map(|row| format!("{HEADER}{row}\n")).collect();
    texts.push(format!("{HEADER}1,0,1,1\n0.5,0,1,1\n"));
    texts.push("0,0,1,1\n".into());
    texts.push("t_arrival_s,src,dst,size\n0,0,1,1\n".into());
    texts.push("src,t_arrival_s,src,dst,size_bytes\n".into());
    texts.push(format!("{HEADER}0,0,{},1\n", "long".repeat(100)));
    let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    insta::assert_snapshot!(table(VALID[2].0, &texts));
}

#[test]
fn bad_rate_lists_have_errors_with_line_and_field() {
    const HEADER: &str = "t_s,link,rate_bps\n";
    let rows =
        ["0,r0,1", "0,r9:uplink,1", "0,r0:uplink,-1", "0,r0:uplink,1e19", "0,r0:uplink,NaN", "x,r0:uplink,1"];
    let mut texts: Vec<_> = rows.iter().map(|row| format!("{HEADER}{row}\n")).collect();
    texts.push(format!("{HEADER}5,r0:uplink,1\n4,r1:uplink,1\n"));
    let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    insta::assert_snapshot!(table(VALID[3].0, &texts));
}

#[test]
fn bad_lists_of_blocks_have_errors_with_line_and_field() {
    const HEADER: &str = "t_arrival_s,writer,size_bytes,job,replicas\n";
    let rows = [
        "0,r0h0,1,a",
        "0,r9h9,1,a,",
        "0,6,1,a,",
        "-1,0,1,a,",
        "0,0,1e16,a,",
        "0,0,,a,",
        "0,0,1,a,0",
        "0,0,1,a,256",
        "0,0,1,a,7",
        "0,0,1,a,two",
    ];
    let mut texts: Vec<_> = rows.iter().map(|row| format!("{HEADER}{row}\n")).collect();
    texts.push(format!("{HEADER}1,0,1,,\n0.5,0,1,,\n"));
    texts.push("0,0,1\n".into());
    texts.push("t_arrival_s,writer,size_bytes,writer\n".into());
    texts.push("t_arrival_s,job,writer,size_bytes,job\n".into());
    let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    insta::assert_snapshot!(
        table("{blocks: {file: b.csv}}", &texts)
            + &table("{blocks: {file: b.csv, coding: 2+1}}", &[format!("{HEADER}0,0,1,a,2\n").as_bytes()])
    );
}

#[test]
fn more_copies_or_chunks_than_hosts_are_rejected_by_setting() {
    let load = |text: &str| {
        let refused = source(text).load(&tree(3, 2), &Inputs::default(), 0, HORIZON);
        refused.unwrap_err().to_string()
    };
    assert_eq!(
        load("{facebook: {load: 100, replicas: 7}}"),
        "facebook: replicas: 7 copies of a block, each on a host of its own, but the cluster has 6 hosts"
    );
    assert_eq!(
        load("{facebook: {load: 100, coding: 6+3}}"),
        "facebook: coding: 9 chunks of a block, each on a host of its own, but the cluster has 6 hosts"
    );
}

#[test]
fn bad_matrices_have_errors_with_line_and_field() {
    let pairs: [&[u8]; 6] = [
        b"src,dst,bytes\n0,1,\n",
        b"src,dst,bytes\n0,r1,1\n",
        b"src,dst,bytes\n0,6,1\n",
        b"src,dst,bytes\n0,0,1\n",
        b"src,bytes\n0,1\n",
        b"src,dst,bytes\n",
    ];
    let squares: [&[u8]; 9] = [
        b"0,1\n",
        b"0,1\n1\n",
        b"0,1\n1,0\n1,1\n",
        b"0,-1\n1,0\n",
        b"0,nan\n1,0\n",
        b"0,1e200\n1,0\n",
        b"0,0\n0,0\n",
        b"src,dst\n0,1\n",
        b"0,0,0,0,0,0,0\n0,0,0,0,0,0,0\n0,0,0,0,0,0,0\n0,0,0,0,0,0,0\n0,0,0,0,0,0,0\n0,0,0,0,0,0,0\n0,1,0,0,0,0,0\n",
    ];
    insta::assert_snapshot!(
        table("{matrix: {file: m.csv, pairs: [src, dst, bytes]}}", &pairs)
            + &table("{matrix: {file: m.csv}}", &squares)
    );
}

#[test]
fn a_parquet_list_needs_a_reader_of_the_inputs() {
    let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("workload-parquet");
    std::fs::create_dir_all(&base).expect("a folder for tests");
    std::fs::write(base.join("flows.parquet"), b"PAR1 and so on").expect("a file for tests");
    let files = Files { base, data: None };
    let flows = source("{flows: {file: flows.parquet}}");
    let load = |tables| flows.load(&tree(3, 2), &Inputs { files: files.clone(), tables }, 0, HORIZON);
    let refused = load(None).unwrap_err().to_string();
    assert_eq!(
        refused,
        "flows.parquet: a Parquet file, which only the Python package reads; write it as CSV"
    );
    let read = load(Some(Arc::new(Memory::of_csv("t_arrival_s,src,dst,size_bytes\n1,0,5,1000\n"))));
    assert_eq!(read.unwrap().workload.flows.len(), 1);
    let broken = load(Some(Arc::new(Broken))).unwrap_err().to_string();
    assert_eq!(broken, "flows.parquet: cut off");
}

#[test]
fn rates_on_devices_and_racks_of_a_mesh_are_rejected() {
    let disks = cluster(
        "{racks: 2, hosts_per_rack: 1, nic: 1Gbps, oversubscription: 1, devices: [{read: 50MB/s, write: 50MB/s}]}",
    );
    let mesh = cluster("{shape: hose, racks: 2, hosts_per_rack: 2, nic: 1Gbps}");
    let mut table = String::new();
    for (settings, text, cluster) in [
        ("{rates: {file: f}}", "t_s,link,rate_bps\n0,r0h0:disk0,1\n", &disks),
        ("{flows: {file: f}}", "t_arrival_s,src,dst,size_bytes\n0,r0,r1,1\n", &mesh),
        ("{flows: {file: f, numbers: racks}}", "t_arrival_s,src,dst,size_bytes\n0,0,1,1\n", &mesh),
        ("{coflow: {file: f}}", "2 1\n1 0 1 0 1 1:1\n", &mesh),
    ] {
        let error = read(&source(settings), text.as_bytes(), cluster, 0, HORIZON).expect_err(settings);
        table += &format!("{settings}: {error}\n");
    }
    insta::assert_snapshot!(table);
}

#[test]
fn missing_files_are_errors_that_name_the_remedy() {
    let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("workload-files");
    std::fs::create_dir_all(base.join("data/traces")).expect("a folder for tests");
    std::fs::write(base.join("here.csv"), "1").expect("a file for tests");
    std::fs::write(base.join("data/traces/there.csv"), "1").expect("a file for tests");
    let files = Files { base: base.clone(), data: Some(base.join("data")) };
    assert!(files.open("here.csv").is_ok() && files.open("data:traces/there.csv").is_ok());
    let unset = Files { data: None, ..files.clone() };
    let mut table = String::new();
    for (files, name) in [
        (&files, "nowhere.csv"),
        (&files, "data:nowhere.csv"),
        (&files, "data:../here.csv"),
        (&files, "data:/etc/hostname"),
        (&files, "data:"),
        (&unset, "data:traces/there.csv"),
    ] {
        let error = files.open(name).err().expect("no such file").to_string();
        table += &format!("{}\n", error.replace(&*base.to_string_lossy(), "BASE"));
    }
    // Opening a folder depends on the system, but a folder is never a valid file.
    let folder = files.open("data").and_then(|_: Text| {
        let inputs = Inputs { files: files.clone(), tables: None };
        source("{rates: {file: data}}").load(&tree(3, 2), &inputs, 0, HORIZON).map(|_| ())
    });
    assert!(folder.is_err());
    insta::assert_snapshot!(table);
}

#[test]
fn a_truncated_gzip_file_is_rejected() {
    for (settings, text) in VALID {
        let whole = gzip(text.as_bytes());
        for length in 0..whole.len() {
            let error = read(&source(settings), &whole[..length], &tree(3, 2), 0, HORIZON)
                .expect_err(&format!("{length} of {} bytes", whole.len()));
            let message = error.to_string();
            let expected = match length {
                0 => "the file is empty",
                // One byte is neither a gzip file nor valid text.
                1 => ":1: ",
                _ => "the gzip data ends early: is the file truncated?",
            };
            assert!(message.contains(expected), "{length} bytes: {message}");
        }
    }
}

/// A change to a file: cut, overwrite, insert, double a line, swap lines, replace a word.
fn mutation() -> impl Strategy<Value = (u8, prop::sample::Index, prop::sample::Index, String)> {
    let word = prop::sample::select(vec![
        "NaN",
        "-1",
        "1e999",
        "inf",
        "",
        "\t",
        ",",
        ":",
        "0",
        "18446744073709551616",
        "\u{feff}",
        "9e15",
        "\"",
        "-0",
    ]);
    (
        0u8..6,
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        prop_oneof![word.prop_map(String::from), ".{0,6}"],
    )
}

fn mutate(text: &str, changes: &[(u8, prop::sample::Index, prop::sample::Index, String)]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for (kind, first, second, word) in changes {
        if bytes.is_empty() {
            break;
        }
        let (a, b) = (first.index(bytes.len()), second.index(bytes.len()));
        let (a, b) = (a.min(b), a.max(b));
        match kind {
            0 => bytes.truncate(b),
            1 => bytes[a] = bytes[b].wrapping_add(word.len() as u8),
            2 => drop(bytes.splice(a..a, word.bytes())),
            3 => drop(bytes.splice(a..b, word.bytes())),
            4 => drop(bytes.splice(b..b, bytes[a..b].to_vec())),
            _ => bytes[a..=b].rotate_left((b - a) / 2),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn a_damaged_file_gives_a_valid_workload_or_an_error_with_its_line(
        which in 0usize..4,
        changes in prop::collection::vec(mutation(), 1..4),
        zip in any::<bool>(),
    ) {
        let (settings, text) = VALID[which];
        let (source, cluster) = (source(settings), tree(3, 2));
        let mut bytes = mutate(text, &changes);
        if zip {
            bytes = gzip(&bytes);
        }
        match read(&source, &bytes, &cluster, 1, HORIZON) {
            Ok(loaded) => check(&loaded.workload, &cluster, HORIZON),
            Err(error) => {
                let whole_file = error.message.contains("empty") || error.message.contains("announces");
                prop_assert!(error.line.is_some() || whole_file, "{error}");
                prop_assert!(error.to_string().len() < 400 && !error.to_string().contains('\n'), "{error}");
            }
        }
    }

    #[test]
    fn damaged_gzip_never_panics(
        which in 0usize..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let (settings, text) = VALID[which];
        let mut bytes = gzip(text.as_bytes());
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(loaded) = read(&source(settings), &bytes, &tree(3, 2), 1, HORIZON) {
            check(&loaded.workload, &tree(3, 2), HORIZON);
        }
    }
}
