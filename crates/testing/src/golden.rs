//! Reference results of released code, in the folder that the variable `LEEWARD_SHARED` names.

use std::io::Read;
use std::path::{Path, PathBuf};

use leeward_calculus::TokenBucket;
use serde_json::Value;

/// Folder `golden/part` of the reference results. Without the variable, prints that the test is skipped and returns
/// `None`.
pub fn folder(part: &str) -> Option<PathBuf> {
    let Some(shared) = std::env::var_os("LEEWARD_SHARED") else {
        println!("skipped: LEEWARD_SHARED is not set, so there is no golden/{part} to compare with");
        return None;
    };
    Some(PathBuf::from(shared).join("golden").join(part))
}

/// Files of a folder whose name is accepted, sorted by name.
///
/// # Panics
/// Panics if the folder does not exist or has no such file.
pub fn files(folder: &Path, accept: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| accept(&name(path))).collect();
    files.sort();
    assert!(!files.is_empty(), "{}: no reference files", folder.display());
    files
}

/// Name of a file without its folder.
///
/// # Panics
/// Panics if the path has no file name in UTF-8.
pub fn name(path: &Path) -> String {
    let name = path.file_name().and_then(|name| name.to_str());
    name.unwrap_or_else(|| panic!("{}: no file name", path.display())).to_owned()
}

/// Text of a file, decompressed if its name ends in `.gz`.
///
/// # Panics
/// Panics if the file cannot be read.
pub fn text(path: &Path) -> String {
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    let read = match path.extension().is_some_and(|extension| extension == "gz") {
        true => flate2::read::GzDecoder::new(file).read_to_string(&mut text),
        false => std::io::BufReader::new(file).read_to_string(&mut text),
    };
    read.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text
}

/// Content of a JSON file, decompressed if its name ends in `.gz`.
///
/// # Panics
/// Panics if the file cannot be read or parsed.
pub fn json(path: &Path) -> Value {
    serde_json::from_str(&text(path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// JSON files of `golden/part` whose name is accepted, with their names; empty without the variable.
///
/// # Panics
/// Panics if the folder has no such file, or one cannot be read or parsed.
pub fn documents(part: &str, accept: impl Fn(&str) -> bool) -> Vec<(String, Value)> {
    let Some(folder) = folder(part) else { return Vec::new() };
    files(&folder, accept).iter().map(|path| (name(path), json(path))).collect()
}

/// A square matrix of whole numbers, row by row.
///
/// # Panics
/// Panics if `rows` is not an array of arrays of whole numbers.
pub fn square(rows: &Value) -> Vec<u64> {
    let numbers = |row: &Value| -> Vec<u64> {
        array(row).iter().map(|entry| entry.as_u64().expect("a whole number")).collect()
    };
    array(rows).iter().flat_map(numbers).collect()
}

/// Elements of an array.
///
/// # Panics
/// Panics if the value is not an array.
pub fn array(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

/// A number, or infinity for the text "inf".
///
/// # Panics
/// Panics if the value is neither.
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().expect("a number or inf").parse().expect("inf"))
}

/// Asserts that a number matches a reference value to a relative error of a millionth.
///
/// # Panics
/// Panics if it does not, with the label of the value.
pub fn close(actual: f64, expected: f64, label: &str) {
    let near = actual == expected || (actual - expected).abs() <= 1e-6 * expected.abs() + 1e-12;
    assert!(near, "{label}: {actual}, expected {expected}");
}

/// Token buckets of a reference curve, an array of points with `x`, `y` and `slope`: one bucket for each point.
///
/// # Panics
/// Panics if the array has another form.
pub fn buckets(curve: &Value) -> Vec<TokenBucket> {
    let line = |point: &Value| {
        let (x, y, slope) = (number(&point["x"]), number(&point["y"]), number(&point["slope"]));
        TokenBucket::new(slope, y - slope * x).expect("a bucket")
    };
    array(curve).iter().map(line).collect()
}
