//! Synthetic traces with correlated gaps, and places for traces without offsets.

use leeward_traces::synthetic::{Bursts, Places, Shape, Sizes, Synthetic};
use proptest::prelude::*;

const COUNT: usize = 1_000_000;

fn shape(gap_c2: f64, bursts: Option<Bursts>) -> Shape {
    Shape {
        rate: 1000.0,
        gap_c2,
        bursts,
        sizes: Sizes::Choice(vec![(4096, 1.0)]),
        read_share: 1.0,
        sequential_share: 0.0,
        volume: 1 << 40,
    }
}

fn with(height: f64, persistence: f64) -> Option<Bursts> {
    Some(Bursts { height, persistence })
}

/// Gaps in units of the requested mean gap.
fn gaps(shape: Shape, seed: u64, count: usize) -> Vec<f64> {
    let times: Vec<u64> = Synthetic::new(shape, seed).unwrap().take(count + 1).map(|one| one.at.0).collect();
    times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect()
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}

fn variance(values: &[f64]) -> f64 {
    let mean_value = mean(values.iter().copied());
    mean(values.iter().map(|value| (value - mean_value) * (value - mean_value)))
}

/// Correlation of values that are `lag` apart.
fn correlation(values: &[f64], lag: usize) -> f64 {
    let mean_value = mean(values.iter().copied());
    let pairs = values.iter().zip(&values[lag..]);
    let products: f64 = pairs.map(|(a, b)| (a - mean_value) * (b - mean_value)).sum();
    products / (values.len() - lag) as f64 / variance(values)
}

/// Variance over mean of the number of requests in windows of this many mean gaps.
fn dispersion(gaps: &[f64], window: f64) -> f64 {
    let (mut at, mut counts) = (0.0, Vec::new());
    for gap in gaps {
        at += gap;
        counts.resize(counts.len().max((at / window) as usize + 1), 0.0);
        counts[(at / window) as usize] += 1.0;
    }
    counts.pop();
    variance(&counts) / mean(counts.iter().copied())
}

#[test]
fn correlated_gaps_have_the_requested_mean_c2_and_correlation() {
    for (c2, height, persistence) in
        [(2.2, 3.0, 0.5), (2.2, 50.0, 0.9), (14.0, 10.0, 0.0), (14.0, 10.0, 0.8), (40.0, 5.0, 0.6)]
    {
        let gaps = gaps(shape(c2, with(height, persistence)), 3, COUNT);
        let name = format!("C^2 {c2}, height {height}, persistence {persistence}");
        let long_run = c2 + (c2 - 1.0) * persistence / (1.0 - persistence);
        // Six standard deviations of the mean.
        let mean_gap = mean(gaps.iter().copied());
        assert!((mean_gap - 1.0).abs() < 6.0 * (long_run / COUNT as f64).sqrt(), "{name}: mean {mean_gap}");
        let found_c2 = variance(&gaps) / (mean_gap * mean_gap);
        assert!((found_c2 / c2 - 1.0).abs() < 0.1, "{name}: {found_c2}");
        for lag in [1, 2, 5] {
            let expected = persistence.powi(lag) * (c2 - 1.0) / (2.0 * c2);
            let found = correlation(&gaps, lag as usize);
            assert!((found - expected).abs() < 0.02, "{name}: {found} at lag {lag}, expected {expected}");
        }
        // Windows of 2000 mean gaps: the variance of 500 counts is off by 6 %, one standard deviation.
        let found = dispersion(&gaps, 2000.0);
        assert!((found / long_run - 1.0).abs() < 0.3, "{name}: dispersion {found}, expected {long_run}");
    }
}

#[test]
fn the_rate_in_a_burst_is_its_height() {
    let (c2, height) = (14.0, 20.0);
    let gaps = gaps(shape(c2, with(height, 0.5)), 5, COUNT);
    // Of two exponential distributions, the second moment of the means gives the share of long gaps.
    let (short, squares) = (1.0 / height, (c2 + 1.0) / 2.0);
    let long = (squares - short) / (1.0 - short);
    let long_share = (1.0 - short) / (long - short);
    for at in [0.2 * short, short, 5.0 * short, 0.5 * long, 2.0 * long] {
        let expected = (1.0 - long_share) * (-at / short).exp() + long_share * (-at / long).exp();
        let found = gaps.iter().filter(|&&gap| gap > at).count() as f64 / COUNT as f64;
        assert!((found - expected).abs() < 0.01, "{found} of gaps above {at}, expected {expected}");
    }
}

#[test]
fn invalid_bursts_are_rejected_with_their_field() {
    let error_of = |c2, bursts| {
        Synthetic::new(shape(c2, bursts), 0).err().map(|error| error.to_string()).expect("an error")
    };
    assert_eq!(error_of(1.0, with(2.0, 0.5)), "gap_c2 1: expected above 1 with bursts");
    assert_eq!(error_of(f64::NAN, with(2.0, 0.5)), "gap_c2 NaN: expected 0 to 1e6");
    assert_eq!(error_of(2.0, with(1.0, 0.5)), "height 1: expected above 1, at most 1e6");
    assert_eq!(error_of(2.0, with(f64::INFINITY, 0.5)), "height inf: expected above 1, at most 1e6");
    assert_eq!(error_of(2.0, with(2.0, 1.0)), "persistence 1: expected 0 to 0.9999");
    assert_eq!(error_of(2.0, with(2.0, f64::NAN)), "persistence NaN: expected 0 to 0.9999");
    let place_error = |volume, share| Places::new(volume, share, 0).err().map(|error| error.to_string());
    assert_eq!(place_error(1 << 60, 1.0), None);
    assert_eq!(place_error(1 << 40, -0.1).unwrap(), "sequential_share -0.1: expected 0 to 1");
    assert!(place_error(u64::MAX, 0.5).unwrap().ends_with("expected at most 2^60 bytes"));
}

proptest! {
    #[test]
    fn times_are_in_order_for_any_bursts(
        c2 in 1.001..1e6f64,
        height in 1.001..1e6f64,
        persistence in 0.0..0.9999f64,
        seed: u64,
    ) {
        let drawn = Synthetic::new(shape(c2, with(height, persistence)), seed).unwrap();
        let times: Vec<u64> = drawn.take(200).map(|request| request.at.0).collect();
        prop_assert!(times.is_sorted());
        let again = Synthetic::new(shape(c2, with(height, persistence)), seed).unwrap();
        prop_assert_eq!(again.take(200).map(|request| request.at.0).collect::<Vec<_>>(), times);
    }

    #[test]
    fn places_are_on_the_volume_or_follow_the_previous_request(
        sizes in prop::collection::vec(1u64..1 << 21, 1..100),
        share in 0.0..=1.0f64,
        seed: u64,
    ) {
        const VOLUME: u64 = 1 << 20;
        let mut places = Places::new(VOLUME, share, seed).unwrap();
        let mut end = None;
        for size in sizes {
            let offset = places.place(size);
            prop_assert!(offset + size <= VOLUME.max(size), "{} B at {}", size, offset);
            prop_assert!(offset.is_multiple_of(512) || end == Some(offset));
            end = Some(offset + size);
        }
    }
}
