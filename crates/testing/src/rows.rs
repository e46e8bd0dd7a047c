//! Tables in tests: all rows are checked, and one panic reports every row that fails.

use std::fmt::Debug;

/// Checks all rows of a table, including those after a row that fails. `check` returns the reason of a failure.
///
/// # Panics
/// Panics if rows fail, with the number of each from 0 and its reason.
#[track_caller]
pub fn check_rows<R>(rows: impl IntoIterator<Item = R>, check: impl FnMut(R) -> Result<(), String>) {
    let results = rows.into_iter().map(check).enumerate();
    let failures: Vec<String> =
        results.filter_map(|(at, result)| Some(format!("row {at}: {}", result.err()?))).collect();
    assert!(failures.is_empty(), "rows fail ({}):\n{}", failures.len(), failures.join("\n"));
}

/// Compares a value of a row with the expected one.
///
/// # Errors
/// Returns a text with both values if they differ.
pub fn equal<A, E>(actual: &A, expected: &E) -> Result<(), String>
where
    A: Debug + PartialEq<E> + ?Sized,
    E: Debug + ?Sized,
{
    if actual == expected { Ok(()) } else { Err(format!("{actual:?}, expected {expected:?}")) }
}

/// Searches a text of a row for the expected part.
///
/// # Errors
/// Returns a text with both if the part is missing.
pub fn contains(text: &str, part: &str) -> Result<(), String> {
    if text.contains(part) { Ok(()) } else { Err(format!("{text:?}, expected a text with {part:?}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_failures_passes() {
        check_rows([(1, "1"), (2, "2")], |(number, text)| equal(&number.to_string(), text));
        check_rows(["ab", "bc"], |text| contains(text, "b"));
    }

    #[test]
    #[should_panic = "rows fail (2):\nrow 0: 1, expected 2\nrow 2: 3, expected 4"]
    fn all_failures_are_reported() {
        check_rows([(1, 2), (2, 2), (3, 4)], |(actual, expected)| equal(&actual, &expected));
    }
}
