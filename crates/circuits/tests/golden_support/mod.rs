//! Reference files of `golden/circuits`, if present.

use std::io::Read;
use std::path::PathBuf;

use serde_json::Value;

/// Reference files whose name starts with `beginning`, by name. Empty, with a printed note, if the files are missing.
pub fn files(beginning: &str) -> Vec<(String, Value)> {
    let Some(shared) = std::env::var_os("LEEWARD_SHARED") else {
        eprintln!("skipped: LEEWARD_SHARED is not set, so there is nothing to compare with");
        return Vec::new();
    };
    let folder = PathBuf::from(shared).join("golden/circuits");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(beginning)).collect();
    names.sort();
    assert!(!names.is_empty(), "{}: no {beginning}*", folder.display());
    names.into_iter().map(|name| (name.clone(), read(&folder.join(name)))).collect()
}

fn read(path: &std::path::Path) -> Value {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    match path.extension().is_some_and(|extension| extension == "gz") {
        true => flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap(),
        false => std::io::BufReader::new(file).read_to_string(&mut text).unwrap(),
    };
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A square matrix of whole numbers, row by row.
pub fn square(rows: &Value) -> Vec<u64> {
    let rows = rows.as_array().unwrap();
    rows.iter().flat_map(|row| row.as_array().unwrap()).map(|entry| entry.as_u64().unwrap()).collect()
}
