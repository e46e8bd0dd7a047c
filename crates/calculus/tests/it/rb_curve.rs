//! r-b curves compared with algorithm 2.1 of the thesis, and properties of every curve.

use leeward_calculus::{ArrivalCurve, CurveError, RbCurve, TokenBucket, TraceError};
use proptest::prelude::*;

/// SLO algorithm 2.1 as published: the burst of a trace at one rate.
fn algorithm_2_1(arrivals: &[(f64, f64)], rate: f64) -> f64 {
    let (mut bucket, mut most, mut previous) = (0.0f64, 0.0f64, 0.0);
    for &(at, work) in arrivals {
        bucket = (bucket - rate * (at - previous)).max(0.0) + work;
        most = most.max(bucket);
        previous = at;
    }
    most
}

/// Traces whose gaps and work are zero, small or large. Traces of many requests have several blocks.
fn traces(most: usize) -> impl Strategy<Value = Vec<(f64, f64)>> {
    let gap = prop_oneof![3 => Just(0.0), 5 => 1e-6..1e-2f64, 1 => 0.1..10.0f64];
    let work = prop_oneof![1 => Just(0.0), 6 => 1.0..100.0f64, 1 => 1e3..1e4f64];
    prop::collection::vec((gap, work), 1..most).prop_map(|rows| {
        let mut at = 0.0;
        rows.into_iter()
            .map(|(gap, work)| {
                at += gap;
                (at, work)
            })
            .collect()
    })
}

fn curve(arrivals: &[(f64, f64)]) -> RbCurve {
    RbCurve::from_arrivals(arrivals.iter().copied()).unwrap()
}

fn total(arrivals: &[(f64, f64)]) -> f64 {
    arrivals.iter().map(|arrival| arrival.1).sum()
}

/// Rates over many orders of magnitude.
fn rates() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-3.0..9.0f64).prop_map(|exponent| 10f64.powf(exponent)), 1..8)
}

proptest! {
    #[test]
    fn the_curve_matches_algorithm_2_1_at_every_rate(trace in traces(400), rates in rates()) {
        let curve = curve(&trace);
        let tolerance = 1e-11 * (1.0 + total(&trace));
        let vertices: Vec<f64> = curve.vertices().map(|bucket| bucket.rate()).collect();
        for rate in rates.into_iter().chain(vertices).chain([0.0]) {
            let (actual, expected) = (curve.burst(rate).unwrap(), algorithm_2_1(&trace, rate));
            prop_assert!((actual - expected).abs() <= tolerance + 1e-9 * expected, "at {}: {}, expected {}", rate, actual, expected);
        }
    }

    #[test]
    fn vertices_lie_on_a_falling_convex_curve(trace in traces(400)) {
        let vertices: Vec<TokenBucket> = curve(&trace).vertices().collect();
        for pair in vertices.windows(2) {
            prop_assert!(pair[0].rate() > pair[1].rate() && pair[0].burst() <= pair[1].burst());
        }
        let slope = |a: TokenBucket, b: TokenBucket| (b.burst() - a.burst()) / (b.rate() - a.rate());
        for three in vertices.windows(3) {
            let (right, left) = (slope(three[0], three[1]), slope(three[1], three[2]));
            prop_assert!(left <= right * (1.0 - 1e-6) || left <= right + 1e-9, "{three:?}");
        }
    }

    #[test]
    fn an_additional_request_never_lowers_the_curve(trace in traces(100), at in 0.0..1.0f64, work in 0.0..500.0f64, rates in rates()) {
        let mut longer = trace.clone();
        let time = at * trace[trace.len() - 1].0;
        longer.insert(trace.partition_point(|arrival| arrival.0 <= time), (time, work));
        let (before, after) = (curve(&trace), curve(&longer));
        for rate in rates {
            prop_assert!(after.burst(rate).unwrap() >= before.burst(rate).unwrap() - 1e-11 * (1.0 + total(&longer)));
        }
    }

    #[test]
    fn the_arrival_curve_bounds_all_arrivals_and_is_attained(trace in traces(120)) {
        let curve = curve(&trace);
        let alpha = curve.arrival_curve();
        for (i, first) in trace.iter().enumerate() {
            let mut work = 0.0;
            for last in &trace[i..] {
                work += last.1;
                prop_assert!(work <= alpha.arrivals(last.0 - first.0) * (1.0 + 1e-9) + 1e-9);
            }
        }
        let mean = curve.mean_rate().unwrap_or(0.0);
        for interval in curve.intervals().filter(|interval| curve.burst(mean).unwrap() > interval.work) {
            prop_assert!((alpha.arrivals(interval.seconds) - interval.work).abs() <= 1e-9 * (1.0 + curve.total()));
        }
    }

    #[test]
    fn a_pruned_curve_exceeds_the_full_one_by_at_most_its_error(trace in traces(400), count in 1usize..12, times in prop::collection::vec(0.0..1.0f64, 8)) {
        let curve = curve(&trace);
        let whole = curve.arrival_curve();
        let pruned = whole.prune_to(count).unwrap();
        prop_assert!(pruned.curve.buckets().len() <= count);
        let length = 2.0 * (1e-6 + trace[trace.len() - 1].0);
        let vertices: Vec<f64> = pruned.curve.vertices().map(|vertex| vertex.0).collect();
        let mut reached = 0.0f64;
        for t in times.into_iter().map(|share| length * share * share * share).chain(vertices) {
            let ratio = pruned.curve.arrivals(t) / whole.arrivals(t);
            prop_assert!(whole.burst() == 0.0 || (ratio >= 1.0 && ratio <= 1.0 + pruned.error + 1e-9), "{ratio} {}", pruned.error);
            reached = reached.max(ratio - 1.0);
        }
        prop_assert!(whole.burst() == 0.0 || reached >= pruned.error - 1e-9, "error {} is not attained, only {}", pruned.error, reached);
        for bucket in whole.buckets() {
            let above = pruned.curve.burst_at(bucket.rate()).unwrap();
            prop_assert!(above >= curve.burst(bucket.rate()).unwrap() - 1e-9 * (1.0 + curve.total()));
        }
        // Pruning within this error keeps at most `count` buckets, or two. The tolerance allows for rounding.
        let within = whole.prune_within(pruned.error * (1.0 + 1e-9) + 1e-12).unwrap();
        prop_assert!(within.error <= pruned.error * (1.0 + 1e-9) + 1e-12 && (count == 1 || within.curve.buckets().len() <= count));
    }

    #[test]
    fn the_effective_bandwidth_is_the_lowest_rate_meeting_the_deadline(trace in traces(200), deadline in 1e-3..10.0f64) {
        let curve = curve(&trace);
        let rate = curve.effective_bandwidth(deadline).unwrap();
        // Largest delay at a fluid server that starts with an empty queue. A request leaves after all work up to it.
        let delay = |rate: f64| trace.iter().scan((0.0f64, 0.0f64), |(queue, previous), &(at, work)| {
            *queue = (*queue - rate * (at - *previous)).max(0.0) + work;
            *previous = at;
            Some(if *queue > 0.0 { *queue / rate } else { 0.0 })
        }).fold(0.0, f64::max);
        prop_assert!(delay(rate) <= deadline * (1.0 + 1e-9));
        let mean = curve.mean_rate().unwrap_or(0.0);
        prop_assert!(rate <= mean || delay(rate * 0.999) > deadline);
    }

    #[test]
    fn the_knee_minimizes_rate_plus_burst(trace in traces(200), rates in rates()) {
        let curve = curve(&trace);
        let knee = curve.knee();
        let least = knee.rate() + knee.burst();
        for rate in rates {
            let rate = rate.max(curve.mean_rate().unwrap_or(0.0));
            prop_assert!(rate + curve.burst(rate).unwrap() >= least * (1.0 - 1e-9));
        }
    }

    #[test]
    fn a_sum_covers_both_workloads_at_any_offset(a in traces(80), b in traces(80), shift in 0.0..2.0f64, rates in rates()) {
        let mut both: Vec<(f64, f64)> = a.iter().copied().chain(b.iter().map(|&(at, work)| (at + shift, work))).collect();
        both.sort_by(|x, y| x.0.total_cmp(&y.0));
        let sum = curve(&a).plus(&curve(&b));
        for rate in rates {
            prop_assert!(algorithm_2_1(&both, rate) <= sum.burst(rate).unwrap() * (1.0 + 1e-9) + 1e-9);
        }
    }

    #[test]
    fn a_margin_scales_the_arrival_curve(trace in traces(100), factor in 0.1..5.0f64, t in 0.0..5.0f64) {
        let curve = curve(&trace);
        let scaled = curve.scaled(factor).unwrap();
        let expected = factor * curve.arrival_curve().arrivals(t);
        prop_assert!((scaled.arrival_curve().arrivals(t) - expected).abs() <= 1e-9 * (1.0 + expected));
    }
}

#[test]
fn a_trace_of_many_blocks_matches_algorithm_2_1() {
    let mut state = 7u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut at = 0.0;
    let trace: Vec<(f64, f64)> = (0..20_000)
        .map(|index| {
            at += -(1.0 - draw()).ln() * if index / 500 % 3 == 0 { 1e-4 } else { 1e-2 };
            (at, 100.0 / (0.01 + draw()))
        })
        .collect();
    let curve = curve(&trace);
    for exponent in -8..40 {
        let rate = curve.mean_rate().unwrap() * 1.3f64.powi(exponent);
        let (actual, expected) = (curve.burst(rate).unwrap(), algorithm_2_1(&trace, rate));
        assert!((actual / expected - 1.0).abs() < 1e-9, "at {rate}: {actual}, expected {expected}");
    }
}

#[test]
fn times_since_1970_lose_no_precision() {
    let base = 1_700_000_000_000_000_000u64;
    let rows = [(0u64, 5.0), (1, 5.0), (3, 1.0), (1_000_000_007, 9.0)];
    let late = RbCurve::from_nanos(rows.map(|(at, work)| (base + at, work))).unwrap();
    assert_eq!(late, RbCurve::from_nanos(rows).unwrap());
    assert_eq!(late.burst(1e9).unwrap(), 9.0);
}

#[test]
fn an_invalid_trace_is_rejected_with_a_reason() {
    let check = |rows: &[(f64, f64)], error: &str| {
        let actual = RbCurve::from_arrivals(rows.iter().copied()).unwrap_err();
        assert_eq!(actual.to_string(), error);
    };
    check(&[], "the trace has no arrivals: an r-b curve needs at least one");
    check(&[(1.0, 1.0), (-1.0, 1.0)], "arrival 1 at -1 seconds comes after one at 1: sort the trace by time");
    check(&[(-1.0, 1.0)], "arrival 0 at -1 seconds: times must be finite and not negative");
    check(&[(f64::NAN, 1.0)], "arrival 0 at NaN seconds: times must be finite and not negative");
    check(&[(f64::INFINITY, 1.0)], "arrival 0 at inf seconds: times must be finite and not negative");
    check(
        &[(0.0, 1.0), (2.0, 1.0), (1.0, 1.0)],
        "arrival 2 at 1 seconds comes after one at 2: sort the trace by time",
    );
    check(&[(0.0, -1.0)], "arrival 0 of work -1: must be finite and not negative");
    check(&[(0.0, 1.0), (0.0, f64::NAN)], "arrival 1 of work NaN: must be finite and not negative");
    check(&[(0.0, f64::INFINITY)], "arrival 0 of work inf: must be finite and not negative");
    check(&[(0.0, 1e308), (1.0, 1e308)], "the work up to arrival 1 overflows: count in a larger unit");
    assert_eq!(
        RbCurve::from_nanos([(5, 1.0), (4, 1.0)]),
        Err(TraceError::Order { index: 1, at: -1e-9, previous: 0.0 })
    );
}

#[test]
fn invalid_queries_are_rejected_with_the_name_of_the_argument() {
    let curve = curve(&[(0.0, 3.0), (1.0, 4.0), (2.0, 1.0)]);
    let alpha = curve.arrival_curve();
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(curve.burst(bad), Err(CurveError::Rate(_))), "{bad}");
        assert!(matches!(curve.scaled(bad), Err(CurveError::Factor(_))), "{bad}");
        assert!(matches!(curve.effective_bandwidth(bad), Err(CurveError::Deadline(_))), "{bad}");
        assert!(matches!(curve.at_mean(bad), Err(CurveError::Multiple(_))), "{bad}");
        assert!(matches!(alpha.prune_within(bad), Err(CurveError::Tolerance(_))), "{bad}");
    }
    assert_eq!(curve.scaled(0.0), Err(CurveError::Factor(0.0)));
    assert_eq!(curve.scaled(1e308), Err(CurveError::Factor(1e308)));
    assert_eq!(curve.effective_bandwidth(0.0), Err(CurveError::Deadline(0.0)));
    assert_eq!(curve.at_mean(0.99), Err(CurveError::Multiple(0.99)));
    assert_eq!(alpha.prune_to(0), Err(CurveError::NoBuckets));
}

#[test]
fn a_trace_of_one_request_or_one_instant_has_no_mean_rate() {
    for rows in [vec![(3.0, 7.0)], vec![(3.0, 2.0), (3.0, 5.0)]] {
        let curve = curve(&rows);
        assert_eq!(curve.mean_rate(), None);
        assert_eq!((curve.burst(0.0).unwrap(), curve.burst(1e9).unwrap()), (7.0, 7.0));
        assert_eq!(curve.arrival_curve(), ArrivalCurve::from(TokenBucket::new(0.0, 7.0).unwrap()));
        assert_eq!(curve.at_mean(2.0), Err(CurveError::NoMean));
        assert_eq!(curve.effective_bandwidth(2.0), Ok(3.5));
    }
    let idle = curve(&[(0.0, 0.0), (4.0, 0.0)]);
    assert_eq!(
        (idle.mean_rate(), idle.burst(0.0), idle.arrival_curve()),
        (Some(0.0), Ok(0.0), ArrivalCurve::zero())
    );
}

#[test]
fn extreme_work_and_gaps_give_finite_curves() {
    let (tiny, huge) = (f64::MIN_POSITIVE, f64::MAX);
    for rows in [
        vec![(0.0, 1.0), (tiny, 1.0), (1.0, 1.0)],
        vec![(0.0, huge / 4.0), (tiny, huge / 4.0), (huge, huge / 4.0)],
        vec![(0.0, tiny), (huge / 2.0, tiny), (huge, tiny)],
    ] {
        let curve = curve(&rows);
        for rate in [0.0, tiny, 1.0, huge] {
            assert!(curve.burst(rate).unwrap().is_finite(), "{rows:?} at {rate}");
        }
        let alpha = curve.arrival_curve();
        assert!(alpha.arrivals(1.0) >= curve.largest(), "{rows:?}");
        assert!(alpha.prune_to(1).unwrap().curve.arrivals(0.0) >= curve.largest(), "{rows:?}");
        assert!(curve.knee().burst() >= curve.largest(), "{rows:?}");
    }
}
