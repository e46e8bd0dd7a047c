//! Numbers in errors.

/// A number, fit to be repeated in an error: the greatest and the least in scientific notation.
pub(crate) fn shown(number: f64) -> String {
    let size = number.abs();
    let plain = !number.is_finite() || size == 0.0 || (1e-6..1e15).contains(&size);
    if plain { number.to_string() } else { format!("{number:e}") }
}
