//! Student's distribution.

/// Probability that a variable with `degrees` degrees of freedom, an odd number, is at least `t`; for t not below 0 it
/// is exact up to rounding (Abramowitz and Stegun 26.7.3).
pub(super) fn at_least(t: f64, degrees: usize) -> f64 {
    let angle = (t / (degrees as f64).sqrt()).atan();
    let cosine = angle.cos();
    // cos + 2/3 cos^3 + 2/3 4/5 cos^5 + ... + cos^(degrees - 2)
    let (mut term, mut sum) = (cosine, 0.0);
    for at in (1..degrees.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cosine * cosine * (at + 1) as f64 / (at + 2) as f64;
    }
    let within = 2.0 / std::f64::consts::PI * (angle + angle.sin() * sum);
    ((1.0 - within) / 2.0).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_those_of_tables() {
        // (t, degrees, probability), from tables of the distribution.
        let table = [
            (0.0, 31, 0.5),
            (1.0, 1, 0.25),
            (2.353, 3, 0.05),
            (2.015, 5, 0.05),
            (2.453, 31, 0.01),
            (3.375, 31, 0.001),
        ];
        for (t, degrees, probability) in table {
            let actual = at_least(t, degrees);
            assert!((actual / probability - 1.0).abs() < 2e-3, "{t} {degrees}: {actual}");
        }
    }
}
