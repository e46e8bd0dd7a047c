//! Reads reference values from the folder `LEEWARD_SHARED`; prints that it skips if the variable is not set.

use leeward_calculus::TokenBucket;
use serde_json::Value;

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
