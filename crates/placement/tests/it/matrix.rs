//! Square matrices of bytes as apps: accepted input, and the position of errors.

use std::path::{Path, PathBuf};

use leeward_fabric::input::Files;
use leeward_fabric::{Bytes, Cpus};
use leeward_placement::tasks::{App, Task};
use leeward_testing::trace_folder;
use proptest::prelude::*;

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("matrix").join(name);
    std::fs::create_dir_all(&folder).expect("cargo's folder for tests can be written to");
    folder
}

fn read(name: &str, text: &[u8]) -> Result<App, String> {
    let base = folder(name);
    std::fs::write(base.join("m.csv"), text).expect("a file in a folder of its own");
    let task = Task { cpus: Cpus(1000), ..Task::default() };
    App::from_matrix_file("m.csv", &Files { base, data: None }, task).map_err(|error| error.to_string())
}

#[test]
fn errors_in_a_matrix_name_the_line() {
    let wide = [b"1,".repeat(100_001), b"1".to_vec()].concat();
    let texts: Vec<(&str, Vec<u8>)> = vec![
        ("empty", b"".to_vec()),
        ("only blank lines", b"\n \n".to_vec()),
        ("not square: few rows", b"1,2,3\n4,5,6\n".to_vec()),
        ("not square: many rows", b"1,2\n3,4\n5,6\n".to_vec()),
        ("ragged", b"1,2\n3\n".to_vec()),
        ("negative", b"0,1\n-2,0\n".to_vec()),
        ("not a number", b"0,1\nNaN,0\n".to_vec()),
        ("infinite", b"0,inf\n0,0\n".to_vec()),
        ("words", b"a,b\n1,2\n".to_vec()),
        ("a hole", b"0,,1\n0,0,0\n0,0,0\n".to_vec()),
        ("too much in all", b"0,4e18\n4e18,0\n".to_vec()),
        ("too many tasks", wide),
        ("not UTF-8", b"0,1\n\xff,0\n".to_vec()),
    ];
    let errors = |(what, text): &(&str, Vec<u8>)| {
        let error = read("wrong", text).expect_err("an error");
        format!("{what:>22}: {error}")
    };
    let table: Vec<String> = texts.iter().map(errors).collect();
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn a_matrix_is_rejected_at_the_first_excess_transfer() {
    // A short file that expands without end, as gzip allows, must not exhaust memory. A row makes 1,499
    // transfers, so 1,334 rows leave room for 334.
    let row = vec!["1"; 1500].join(",") + "\n";
    let error = read("bomb", row.repeat(1500).as_bytes()).expect_err("an error");
    assert_eq!(error, "m.csv:1335: column 335: more than 2000000 transfers in one app");
}

#[test]
fn the_matrices_of_mpi_programs_are_apps() {
    let Some(folder) = trace_folder("mpi-comm-matrices") else { return };
    let data = folder.parent().map(Path::to_path_buf);
    let files = Files { data, ..Files::default() };
    for name in ["amg", "btmz", "cg", "lulesh"] {
        let file = format!("data:mpi-comm-matrices/{name}-64.size.csv");
        let app = App::from_matrix_file(&file, &files, Task::default()).expect("a matrix");
        assert_eq!((app.names.len(), app.name.as_str()), (64, format!("{name}-64.size").as_str()));
        assert!(!app.request.transfers.is_empty());
    }
}

proptest! {
    #[test]
    fn a_matrix_file_equals_the_rows_it_was_written_from(rows in (1_usize..8).prop_flat_map(|size| {
        prop::collection::vec(prop::collection::vec(0_u32..1_000_000, size), size)
    })) {
        let rows: Vec<Vec<f64>> = rows.into_iter().map(|row| row.into_iter().map(f64::from).collect()).collect();
        let line = |row: &Vec<f64>| row.iter().map(f64::to_string).collect::<Vec<_>>().join(",") + "\n";
        let text: String = rows.iter().map(line).collect();
        let from_file = read("same", text.as_bytes()).expect("a matrix");
        let task = Task { cpus: Cpus(1000), ..Task::default() };
        let from_rows = App::from_rows(&rows, task).expect("a matrix");
        prop_assert_eq!(&from_file.request, &from_rows.request);
        let sent: u64 = from_file.request.transfers.iter().map(|transfer| transfer.bytes.0).sum();
        let off_diagonal = (0..rows.len()).flat_map(|at| (0..rows.len()).filter(move |&to| to != at).map(move |to| (at, to)));
        prop_assert_eq!(Bytes(sent), Bytes(off_diagonal.map(|(at, to)| rows[at][to] as u64).sum()));
    }

    #[test]
    fn no_text_panics_the_reader(text in "[0-9,.\\-eNaif\n ]{0,60}") {
        let _ = read("any", text.as_bytes());
    }
}
