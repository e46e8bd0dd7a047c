//! Numbers in errors.

/// A number for an error message: very large and very small numbers are in scientific notation.
pub(crate) fn format_number(number: f64) -> String {
    let size = number.abs();
    let plain = !number.is_finite() || size == 0.0 || (1e-6..1e15).contains(&size);
    if plain { number.to_string() } else { format!("{number:e}") }
}
