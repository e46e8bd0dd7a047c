//! Reads reference values from the folder `LEEWARD_SHARED`; prints that it skips if the variable is not set.

use std::path::PathBuf;

use leeward_calculus::TokenBucket;
use serde_json::Value;

/// The folder of reference values; `None`, with a message, if there is none.
pub fn folder() -> Option<PathBuf> {
    let shared = std::env::var_os("LEEWARD_SHARED");
    if shared.is_none() {
        eprintln!("skipped: LEEWARD_SHARED is not set, so there is nothing to compare with");
    }
    Some(PathBuf::from(shared?).join("golden/qos"))
}

/// The files of a folder with this ending, in order of name, with their content.
pub fn files(folder: PathBuf, ending: &str) -> Vec<(String, Value)> {
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    let read = |name: &String| json(folder.join(name));
    names.iter().map(|name| (name.clone(), read(name))).collect()
}

/// A file of JSON.
pub fn json(path: PathBuf) -> Value {
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A number, or infinity for the text "inf".
pub fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| value.as_str().expect("a number or inf").parse().unwrap())
}

/// The elements of an array.
pub fn each(value: &Value) -> &[Value] {
    value.as_array().expect("an array")
}

/// Asserts that a number matches a reference value to a relative error of a millionth.
pub fn close(found: f64, expected: f64, of: &str) {
    let near = found == expected || (found - expected).abs() <= 1e-6 * expected.abs() + 1e-12;
    assert!(near, "{of}: {found}, expected {expected}");
}

/// The buckets of a reference curve of (x, y, slope), by its slopes.
pub fn lines(curve: &Value) -> Vec<TokenBucket> {
    let line = |point: &Value| {
        let (x, y, slope) = (number(&point["x"]), number(&point["y"]), number(&point["slope"]));
        TokenBucket::new(slope, y - slope * x).unwrap()
    };
    each(curve).iter().map(line).collect()
}
