//! State of each interval: the most likely path through the states of a mixture.
//!
//! A count alone does not tell neighbouring states apart; the intervals around it do. So rates and transitions are
//! estimated from a path, and the most likely path under them (Viterbi) is the next one, until it stays the same
//! (segmental k-means, Juang and Rabiner, IEEE Transactions on Acoustics, Speech, and Signal Processing 1990). The
//! first path takes each interval for itself.

use super::mixture::Component;

/// Most paths that are tried.
const MOST_PATHS: usize = 10;
/// Least rate of a state in the likelihood of a count, so that a count in an idle state is improbable, not impossible.
const LEAST_RATE: f64 = 1e-12;

/// Intervals with their counts: requests per whole interval, and the length relative to a whole interval.
pub(super) type Count = (f64, f64);

/// State of each interval, as an index of `components`.
pub(super) fn path(counts: &[Count], components: &[Component]) -> Vec<u8> {
    let mut rates: Vec<f64> = components.iter().map(|component| component.rate).collect();
    let emissions = Emissions::new(&rates);
    let likeliest = |&count: &Count| {
        let value = |at: usize| components[at].share.ln() + emissions.of(at, count);
        let states = 0..components.len();
        states.reduce(|best, next| if value(next) > value(best) { next } else { best }).unwrap_or(0) as u8
    };
    let mut states: Vec<u8> = counts.iter().map(likeliest).collect();
    for _ in 0..MOST_PATHS {
        estimate(counts, &states, &mut rates);
        let next = most_likely(counts, &Emissions::new(&rates), &transitions(&states, rates.len()));
        if next == states {
            break;
        }
        states = next;
    }
    states
}

/// Likelihoods of counts in each state.
struct Emissions {
    /// Rate of each state, and its logarithm.
    rates: Vec<(f64, f64)>,
}

impl Emissions {
    fn new(rates: &[f64]) -> Emissions {
        Emissions { rates: rates.iter().map(|rate| (*rate, rate.max(LEAST_RATE).ln())).collect() }
    }

    /// Logarithm of the likelihood, up to a constant of the count.
    fn of(&self, state: usize, (count, length): Count) -> f64 {
        let (rate, logarithm) = self.rates[state];
        length * (count * logarithm - rate)
    }
}

/// Sets the rate of each state with intervals to their mean.
fn estimate(counts: &[Count], states: &[u8], rates: &mut [f64]) {
    let mut sums = vec![(0.0, 0.0); rates.len()];
    for (&(count, length), &state) in counts.iter().zip(states) {
        let sum = &mut sums[usize::from(state)];
        sum.0 += length;
        sum.1 += count * length;
    }
    for (rate, (length, requests)) in rates.iter_mut().zip(sums) {
        if length > 0.0 {
            *rate = requests / length;
        }
    }
}

/// Logarithms of the probabilities of transitions, by source and target. One additional interval in each state, which
/// continues in any state, keeps all of them possible.
fn transitions(states: &[u8], count: usize) -> Vec<f64> {
    let mut seen = vec![1.0 / count as f64; count * count];
    for pair in states.windows(2) {
        seen[usize::from(pair[0]) * count + usize::from(pair[1])] += 1.0;
    }
    for row in seen.chunks_mut(count) {
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|entry| *entry = (*entry / total).ln());
    }
    seen
}

/// The most likely path. Of equally likely ones, that with the lower states.
fn most_likely(counts: &[Count], emissions: &Emissions, transitions: &[f64]) -> Vec<u8> {
    let count = emissions.rates.len();
    let mut from = vec![0_u8; counts.len() * count];
    let mut scores = vec![0.0; count];
    let mut next = scores.clone();
    for (at, &interval) in counts.iter().enumerate() {
        for (to, entry) in next.iter_mut().enumerate() {
            let (mut best, mut source) = (f64::NEG_INFINITY, 0);
            for (before, &score) in scores.iter().enumerate() {
                let value = score + if at > 0 { transitions[before * count + to] } else { 0.0 };
                if value > best {
                    (best, source) = (value, before);
                }
            }
            *entry = best + emissions.of(to, interval);
            from[at * count + to] = source as u8;
        }
        std::mem::swap(&mut scores, &mut next);
    }
    let last = (0..count).reduce(|best, next| if scores[next] > scores[best] { next } else { best });
    let mut state = last.unwrap_or(0) as u8;
    let mut states = vec![state; counts.len()];
    for at in (1..counts.len()).rev() {
        state = from[at * count + usize::from(state)];
        states[at - 1] = state;
    }
    states
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_decide_on_the_state_of_a_count_between_two_rates() {
        let components = [Component { share: 0.5, rate: 4.0 }, Component { share: 0.5, rate: 9.0 }];
        // A hundred intervals around each rate. Alone, the 8 on one side, and the 5 and the 6 on the other, would be
        // counts of the other rate.
        let low = [4.0, 3.0, 6.0, 2.0, 5.0, 4.0, 8.0, 3.0, 4.0, 5.0];
        let high = [9.0, 8.0, 11.0, 5.0, 9.0, 10.0, 7.0, 12.0, 9.0, 6.0];
        let counts: Vec<Count> =
            (0..200).map(|at| (if at < 100 { low[at % 10] } else { high[at % 10] }, 1.0)).collect();
        let states = path(&counts, &components);
        assert!(states[..100].iter().all(|&state| state == 0), "{states:?}");
        assert!(states[100..].iter().all(|&state| state == 1), "{states:?}");
    }

    #[test]
    fn idle_intervals_between_bursts_are_a_state_of_their_own() {
        let components = [Component { share: 0.9, rate: 1e-12 }, Component { share: 0.1, rate: 20.0 }];
        let counts: Vec<Count> = (0..100).map(|at| (if at % 10 == 3 { 20.0 } else { 0.0 }, 1.0)).collect();
        let states = path(&counts, &components);
        assert!(counts.iter().zip(&states).all(|(count, &state)| (count.0 > 0.0) == (state == 1)));
    }

    #[test]
    fn a_path_of_one_state_or_one_interval_is_valid() {
        let one = [Component { share: 1.0, rate: 2.0 }];
        assert_eq!(path(&[(2.0, 1.0); 5], &one), [0; 5]);
        let two = [Component { share: 0.5, rate: 2.0 }, Component { share: 0.5, rate: 50.0 }];
        assert_eq!(path(&[(51.0, 0.5)], &two), [1]);
        assert!(path(&[], &two).is_empty());
    }
}
