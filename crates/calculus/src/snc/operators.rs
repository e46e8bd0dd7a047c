//! Results of the operators from the bounds of their operands, and the derivatives of the results.

use crate::mmpp::Bound;

/// Operation that combines two operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Aggregate,
    Leftover,
    Output,
    Convolution,
}

/// A union bound over all times in the past, taken in blocks of `block` steps: the logarithm of
///
/// ```text
/// 1 + sum over j >= 1 of exp(gross (block - 1) - rate block j)
/// ```
///
/// Each term covers the steps of one block. Arrivals within part of a block are at most the arrivals of the whole
/// block. The service does at most `gross` (times theta) per step. Before the last step of a block, its work is
/// therefore at most gross (block - 1) below its work at the last step. For blocks of one step this is -log(1 -
/// exp(-rate)), as published.
pub(super) struct Union {
    pub(super) logarithm: f64,
    /// The derivative of the union by the rate.
    pub(super) by_rate: f64,
    pub(super) by_gross: f64,
}

impl Union {
    #[inline]
    pub(super) fn new(rate: f64, gross: f64, block: f64) -> Union {
        let odds = (rate * block).exp_m1().recip();
        let terms = (gross * (block - 1.0)).exp() * odds;
        let share = 1.0 / (1.0 + terms.recip());
        Union {
            logarithm: terms.ln_1p(),
            by_rate: -share * block * (1.0 + odds),
            by_gross: share * (block - 1.0),
        }
    }
}

/// Parameters of a union bound over time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moments {
    /// Steps of a block, a whole number.
    pub(super) block: f64,
    /// Most work of the service in a step.
    pub(super) gross: f64,
    /// Work that the service may have to do first, part of its sigma.
    pub(super) whole: f64,
}

impl Moments {
    /// Number of steps of service for `whole`, rounded up. The union over the times before an output ends that many
    /// steps earlier.
    fn late(&self) -> f64 {
        if self.whole > 0.0 { (self.whole / self.gross).ceil() } else { 0.0 }
    }
}

/// The bound of an operator's result; `None` if none exists.
///
/// A convolution is the minimum over all times of the sum of two services. All times of a block are treated together:
/// each service gets the block and the time before or after it, minus its possible work in the block.
///
/// A service with initial work is a service that starts some steps later. Its output up to a time is at least its
/// service up to that number of steps earlier, and never negative. The sigma of an output therefore does not contain
/// all of `whole`. It contains only the arrivals in these steps: its own, and the arrivals that determined the service.
#[inline]
pub(super) fn combine(
    operator: Operator,
    theta: f64,
    (left, right): (Bound, Bound),
    tau: f64,
    moments: Moments,
) -> Option<Bound> {
    let Moments { block, gross, whole } = moments;
    let sigma = left.sigma + right.sigma;
    match operator {
        Operator::Aggregate | Operator::Leftover => Some(Bound { rho: left.rho + right.rho, sigma }),
        Operator::Output => {
            let w = theta * (left.rho + right.rho);
            let past = Union::new(-w, theta * gross, block);
            let late = moments.late();
            let first = late * (left.rho + right.rho + gross) - whole;
            let first = if late > 0.0 { first } else { 0.0 };
            (w < 0.0).then(|| Bound { rho: left.rho, sigma: sigma + first + past.logarithm / theta })
        }
        Operator::Convolution => {
            // An even slower service may replace the slower service, so that the gap is at least tau / theta.
            let (slow, fast) = (left.rho.max(right.rho), left.rho.min(right.rho));
            let gap = (slow - fast).max(tau / theta);
            let rho = fast + gap;
            let logarithm = (-(-theta * gap * block).exp_m1()).ln();
            let within = (gross + fast) * (block - 1.0);
            (rho < 0.0 && gap > 0.0).then(|| Bound { rho, sigma: sigma + within - logarithm / theta })
        }
    }
}

/// Derivatives of rho and of sigma: by the rho of each operand, by theta itself, and by tau. The sigmas of the operands
/// are simply added up.
pub(super) struct Partials {
    pub(super) left: (f64, f64),
    pub(super) right: (f64, f64),
    pub(super) theta: (f64, f64),
    pub(super) slack: (f64, f64),
}

/// The derivatives of an operator's result.
#[inline]
pub(super) fn partials(
    operator: Operator,
    theta: f64,
    (left, right): (Bound, Bound),
    tau: f64,
    moments: Moments,
) -> Partials {
    let Moments { block, gross, .. } = moments;
    let zero = (0.0, 0.0);
    match operator {
        Operator::Aggregate | Operator::Leftover => {
            Partials { left: (1.0, 0.0), right: (1.0, 0.0), theta: zero, slack: zero }
        }
        Operator::Output => {
            let sum = left.rho + right.rho;
            let past = Union::new(-theta * sum, theta * gross, block);
            let by_theta = past.by_gross * gross - past.by_rate * sum - past.logarithm / theta;
            Partials {
                left: (1.0, moments.late() - past.by_rate),
                right: (0.0, moments.late() - past.by_rate),
                theta: (0.0, by_theta / theta),
                slack: zero,
            }
        }
        Operator::Convolution => {
            let own = (left.rho - right.rho).abs();
            let first = left.rho >= right.rho;
            let sides = |slow, fast| if first { (slow, fast) } else { (fast, slow) };
            let within = block - 1.0;
            if own >= tau / theta {
                let odds = block * (theta * own * block).exp_m1().recip();
                let logarithm = (-(-theta * own * block).exp_m1()).ln();
                let (left, right) = sides((1.0, -odds), (0.0, within + odds));
                let theta = (0.0, (logarithm / theta - odds * own) / theta);
                Partials { left, right, theta, slack: zero }
            } else {
                let logarithm = (-(-tau * block).exp_m1()).ln();
                let (left, right) = sides(zero, (1.0, within));
                Partials {
                    left,
                    right,
                    theta: (-tau / (theta * theta), logarithm / (theta * theta)),
                    slack: (1.0 / theta, -block / (theta * (tau * block).exp_m1())),
                }
            }
        }
    }
}
