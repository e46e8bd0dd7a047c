//! Minimisers: of one variable by Brent's method, of several by BFGS along the gradient.
//!
//! Both minimisers are hand-written instead of taken from a library such as argmin. The functions are infinite outside
//! their domain, which line searches of libraries do not accept. Bounds must be the same to the last digit on every
//! run, so no library update may change the order of evaluations.

/// The golden section of an interval.
const GOLDEN: f64 = 0.381_966_011_250_105_1;
const MOST_STEPS: usize = 100;
/// Longest move of a coordinate in one step of BFGS.
const LONGEST_MOVE: f64 = 2.0;
/// Share of the decrease predicted by the gradient that a step must reach (Armijo).
const SUFFICIENT: f64 = 1e-4;

/// The minimum between the first and the last of three points, near the middle one, and its position to about
/// `tolerance`. The given values may be approximations of `f`; unknown values are infinite.
pub(super) fn brent(
    [low, start, high]: [(f64, f64); 3],
    tolerance: f64,
    mut f: impl FnMut(f64) -> f64,
) -> (f64, f64) {
    let (mut a, mut b) = (low.0, high.0);
    // The best three points so far, with their values.
    let (mut x, mut w, mut v) = if low.1 <= high.1 { (start, low, high) } else { (start, high, low) };
    let (mut step, mut before) = (0.0, high.0 - low.0);
    for _ in 0..MOST_STEPS {
        let middle = (a + b) / 2.0;
        if (x.0 - middle).abs() + (b - a) / 2.0 <= 2.0 * tolerance {
            break;
        }
        let mut golden = true;
        if before.abs() > tolerance && w.1.is_finite() && v.1.is_finite() {
            let r = (x.0 - w.0) * (x.1 - v.1);
            let q = (x.0 - v.0) * (x.1 - w.1);
            let numerator = (x.0 - v.0) * q - (x.0 - w.0) * r;
            let denominator = 2.0 * (q - r);
            let move_by = -numerator / denominator;
            let to = x.0 + move_by;
            if move_by.is_finite() && move_by.abs() < before.abs() / 2.0 && to > a && to < b {
                golden = false;
                (before, step) = (step, move_by);
                if to - a < 2.0 * tolerance || b - to < 2.0 * tolerance {
                    step = tolerance.copysign(middle - x.0);
                }
            }
        }
        if golden {
            before = if x.0 < middle { b - x.0 } else { a - x.0 };
            step = GOLDEN * before;
        }
        let at = x.0 + if step.abs() >= tolerance { step } else { tolerance.copysign(step) };
        let new = (at, f(at));
        if new.1 <= x.1 {
            if new.0 < x.0 {
                b = x.0
            } else {
                a = x.0
            }
            (v, w, x) = (w, x, new);
        } else {
            if new.0 < x.0 {
                a = new.0
            } else {
                b = new.0
            }
            if new.1 <= w.1 || w.0 == x.0 {
                (v, w) = (w, new);
            } else if new.1 <= v.1 || v.0 == x.0 || v.0 == w.0 {
                v = new;
            }
        }
    }
    x
}

/// Descends from `x`, where `f` is finite, until `f` decreases by at most the share `tolerance` of its value in each of
/// two successive steps. `f` writes the gradient. Returns the minimum; `x` is its position.
pub(super) fn bfgs(x: &mut [f64], tolerance: f64, mut f: impl FnMut(&[f64], &mut [f64]) -> f64) -> f64 {
    let n = x.len();
    let mut gradient = vec![0.0; n];
    let mut value = f(x, &mut gradient);
    let mut inverse = identity(n);
    let (mut fresh, mut idle) = (true, 0);
    let (mut next, mut next_gradient) = (vec![0.0; n], vec![0.0; n]);
    for _ in 0..3 * MOST_STEPS {
        let mut direction: Vec<f64> =
            (0..n).map(|row| -dot(&inverse[row * n..(row + 1) * n], &gradient)).collect();
        let longest = direction.iter().fold(0.0, |most: f64, by| most.max(by.abs()));
        if longest > LONGEST_MOVE {
            direction.iter_mut().for_each(|by| *by *= LONGEST_MOVE / longest);
        }
        let slope = dot(&direction, &gradient);
        let mut share = 1.0;
        let lower = (slope < 0.0)
            .then(|| {
                (0..40).find_map(|_| {
                    for at in 0..n {
                        next[at] = x[at] + share * direction[at];
                    }
                    let value_there = f(&next, &mut next_gradient);
                    let enough = value_there <= value + SUFFICIENT * share * slope;
                    share /= 2.0;
                    enough.then_some(value_there)
                })
            })
            .flatten();
        let Some(lower) = lower else {
            if fresh {
                break;
            }
            (inverse, fresh) = (identity(n), true);
            continue;
        };
        let step: Vec<f64> = (0..n).map(|at| next[at] - x[at]).collect();
        let gradient_change: Vec<f64> = (0..n).map(|at| next_gradient[at] - gradient[at]).collect();
        update(&mut inverse, &step, &gradient_change, fresh);
        fresh = false;
        idle = if value - lower <= tolerance * value.abs() { idle + 1 } else { 0 };
        x.copy_from_slice(&next);
        gradient.copy_from_slice(&next_gradient);
        value = lower;
        if idle == 2 {
            break;
        }
    }
    value
}

fn identity(n: usize) -> Vec<f64> {
    (0..n * n).map(|at| if at % (n + 1) == 0 { 1.0 } else { 0.0 }).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Updates the inverse Hessian after a step that changed the gradient by `gradient_change`.
fn update(inverse: &mut [f64], step: &[f64], gradient_change: &[f64], fresh: bool) {
    let n = step.len();
    let curvature = dot(step, gradient_change);
    if curvature <= 1e-12 * (dot(step, step) * dot(gradient_change, gradient_change)).sqrt() {
        return;
    }
    if fresh {
        let scale = curvature / dot(gradient_change, gradient_change);
        inverse.iter_mut().for_each(|entry| *entry *= scale);
    }
    let image: Vec<f64> = (0..n).map(|row| dot(&inverse[row * n..(row + 1) * n], gradient_change)).collect();
    let stretch = (1.0 + dot(gradient_change, &image) / curvature) / curvature;
    for row in 0..n {
        for column in 0..n {
            inverse[row * n + column] += stretch * step[row] * step[column]
                - (image[row] * step[column] + step[row] * image[column]) / curvature;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brent_finds_the_minimum_beside_infinite_values() {
        let f = |x: f64| if x >= 1.0 { f64::INFINITY } else { 1.0 / x - 0.01 * (1.0 - x).ln() };
        let bracket = [0.5, 0.75, 1.2].map(|x| (x, f(x)));
        let (x, value) = brent(bracket, 1e-9, f);
        let exact = (1..2_000_000).map(|at| f(f64::from(at) / 2e6)).fold(f64::INFINITY, f64::min);
        assert!(value <= exact + 1e-12 && x < 1.0, "{x} {value} {exact}");
    }

    #[test]
    fn bfgs_finds_the_minimum_of_the_rosenbrock_function() {
        let rosenbrock = |x: &[f64], gradient: &mut [f64]| {
            let bend = x[1] - x[0] * x[0];
            gradient[0] = -2.0 * (1.0 - x[0]) - 400.0 * x[0] * bend;
            gradient[1] = 200.0 * bend;
            1.0 + (1.0 - x[0]).powi(2) + 100.0 * bend * bend
        };
        let mut x = [-1.2, 1.0];
        let value = bfgs(&mut x, 1e-14, rosenbrock);
        assert!((value - 1.0).abs() < 1e-9, "{value} at {x:?}");
    }
}
