//! Summary statistics, synthetic traces drawn with given statistics, and parts of traces.

use std::num::NonZeroU64;

use leeward_fabric::Nanos;
use leeward_traces::device::Device;
use leeward_traces::select::{halves, rotate, window};
use leeward_traces::statistics::{Statistics, Summary};
use leeward_traces::synthetic::{Shape, Sizes, Synthetic, TABLE_3_1};
use leeward_traces::{Kind, NetworkWork, Request, Work};
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

fn summary(requests: &[Request]) -> Summary {
    let mut statistics = Statistics::new(NonZeroU64::new(SECOND).unwrap());
    let mut work = Work::new(NetworkWork::new(0.0, 1.0, 0.0).unwrap(), None);
    for request in requests {
        statistics.push(request, work.of(request).unwrap());
    }
    statistics.summary()
}

fn reads(times: &[u64]) -> Vec<Request> {
    times.iter().map(|&at| Request { at: Nanos(at), kind: Kind::Read, size: 100, offset: None }).collect()
}

fn shape(rate: f64, gap_c2: f64) -> Shape {
    Shape {
        rate,
        gap_c2,
        bursts: None,
        sizes: Sizes::Choice(vec![(4096, 3.0), (65_536, 1.0)]),
        read_share: 0.7,
        sequential_share: 0.4,
        volume: 1 << 40,
    }
}

#[test]
fn statistics_of_a_small_trace_match_a_count_by_hand() {
    let found = summary(&reads(&[SECOND, SECOND + 1, 3 * SECOND, 5 * SECOND]));
    assert_eq!((found.requests, found.seconds), (4, 4.0));
    assert_eq!((found.rate, found.read_share), (Some(1.0), Some(1.0)));
    assert_eq!((found.bytes, found.mean_size, found.largest_size), (400, Some(100.0), Some(100)));
    // Two requests in the first second, and one request per second on average.
    assert_eq!(found.peak_over_mean, Some(2.0));
    let out = found.work[2].unwrap();
    assert_eq!(
        (out.total, out.rate, out.largest, out.peak_over_mean),
        (400.0, Some(100.0), 100.0, Some(2.0))
    );
    assert_eq!(found.work[0].unwrap().peak_over_mean, None);
    assert_eq!(found.work[1], None);
    // Gaps of 0, 2 and 2 s have mean 4/3 and variance 8/9.
    assert!((found.gap_c2.unwrap() - 0.5).abs() < 1e-8);
}

#[test]
fn undefined_statistics_are_absent() {
    let empty = summary(&[]);
    assert_eq!((empty.requests, empty.rate, empty.mean_size, empty.largest_size), (0, None, None, None));
    assert_eq!(empty.work, [None; 3]);
    for times in [&[5][..], &[5, 5, 5]] {
        let summary = summary(&reads(times));
        assert_eq!(
            (summary.seconds, summary.rate, summary.gap_c2, summary.peak_over_mean),
            (0.0, None, None, None)
        );
        assert_eq!((summary.mean_size, summary.work[2].unwrap().rate), (Some(100.0), None));
    }
    // One gap has no variance, and a trace shorter than a window has no peak.
    let two = summary(&reads(&[0, SECOND / 2]));
    assert_eq!((two.rate, two.gap_c2, two.peak_over_mean), (Some(4.0), None, None));
}

#[test]
fn no_peak_is_below_the_mean() {
    // One request in each of two windows; the second window has only begun.
    let found = summary(&reads(&[0, SECOND]));
    assert_eq!((found.peak_over_mean, found.work[2].unwrap().peak_over_mean), (Some(1.0), Some(1.0)));
}

#[test]
fn synthetic_traces_have_the_requested_statistics() {
    const COUNT: usize = 200_000;
    for c2 in [0.0, 0.3, 1.0, 1.3, 2.2, 14.0, 40.0] {
        let requests: Vec<Request> = Synthetic::new(shape(250.0, c2), 7).unwrap().take(COUNT).collect();
        assert!(requests.is_sorted_by_key(|request| request.at));
        let found = summary(&requests);
        // Six standard deviations of the mean of this number of independent gaps.
        let off = (found.rate.unwrap() / 250.0 - 1.0).abs();
        assert!(off < 6.0 * (c2.max(1e-6) / COUNT as f64).sqrt() + 1e-4, "C^2 {c2}: rate off by {off}");
        let found_c2 = found.gap_c2.unwrap();
        assert!((found_c2 - c2).abs() <= 0.15 * c2 + 1e-6, "C^2 {found_c2}, requested {c2}");
        assert!((found.read_share.unwrap() - 0.7).abs() < 0.01);
        let mean = (3.0 * 4096.0 + 65_536.0) / 4.0;
        assert!((found.mean_size.unwrap() / mean - 1.0).abs() < 0.02);
        let follows = |pair: &[Request]| pair[1].offset.unwrap() == pair[0].offset.unwrap() + pair[0].size;
        let sequential = requests.windows(2).filter(|pair| follows(pair)).count() as f64 / (COUNT - 1) as f64;
        assert!((sequential - 0.4).abs() < 0.01, "{sequential}");
    }
}

#[test]
fn times_and_kinds_depend_on_the_seed_but_not_on_the_sizes() {
    let draw = |shape: Shape, seed| Synthetic::new(shape, seed).unwrap().take(100).collect::<Vec<_>>();
    assert_eq!(draw(shape(10.0, 20.0), 1), draw(shape(10.0, 20.0), 1));
    assert_ne!(draw(shape(10.0, 20.0), 1), draw(shape(10.0, 20.0), 2));
    let sizes = Sizes::LogNormal { mean: 20_000.0, c2: 2.0, largest: 1 << 20 };
    let other = draw(Shape { sizes, ..shape(10.0, 20.0) }, 1);
    assert!(other.iter().zip(draw(shape(10.0, 20.0), 1)).all(|(a, b)| a.at == b.at && a.kind == b.kind));
    assert!(other.iter().all(|request| request.size.is_multiple_of(512) && request.size <= 1 << 20));
}

#[test]
fn log_normal_sizes_have_their_mean() {
    let sizes = Sizes::LogNormal { mean: 50_000.0, c2: 1.0, largest: 1 << 30 };
    let requests: Vec<Request> =
        Synthetic::new(Shape { sizes, ..shape(10.0, 1.0) }, 3).unwrap().take(100_000).collect();
    // Rounding up to whole blocks adds half a block on average.
    assert!((summary(&requests).mean_size.unwrap() - 50_256.0).abs() < 1500.0);
}

#[test]
fn an_invalid_shape_is_rejected_with_its_field() {
    let error_of = |shape: Shape| Synthetic::new(shape, 0).err().expect("an error").to_string();
    let valid = || shape(1.0, 1.0);
    assert_eq!(error_of(shape(0.0, 1.0)), "rate 0: expected 1e-6 to 1e9 requests a second");
    assert_eq!(error_of(shape(1.0, -1.0)), "gap_c2 -1: expected 0 to 1e6");
    assert_eq!(error_of(shape(1.0, 1e-12)), "gap_c2 1e-12: expected 0, or 1e-9 and more");
    assert_eq!(error_of(Shape { read_share: 1.1, ..valid() }), "read_share 1.1: expected 0 to 1");
    assert_eq!(
        error_of(Shape { sequential_share: f64::NAN, ..valid() }),
        "sequential_share NaN: expected 0 to 1"
    );
    let empty = Sizes::Choice(vec![]);
    assert_eq!(
        error_of(Shape { sizes: empty, ..valid() }),
        "sizes 0: expected at least one with a weight above 0"
    );
    let small = Shape { volume: 4096, ..valid() };
    assert_eq!(error_of(small), "volume 4096: expected bytes of at least the largest request, at most 2^60");
}

#[test]
fn every_workload_of_the_thesis_table_can_be_drawn_at_its_load() {
    const COUNT: usize = 50_000;
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/slo/disk.yaml");
    let disk = Device::read(file).unwrap();
    for workload in TABLE_3_1 {
        let draw = |rate| {
            let seed = u64::from(workload.letter);
            let mut statistics = Statistics::new(NonZeroU64::new(SECOND).unwrap());
            let mut work = Work::new(NetworkWork::default(), Some(&disk));
            for request in Synthetic::new(shape(rate, workload.gap_c2), seed).unwrap().take(COUNT) {
                statistics.push(&request, work.of(&request).unwrap());
            }
            statistics.summary()
        };
        let (stage, load, capacity) = match workload.storage_load {
            Some(load) => (1, load, 1.0),
            None => (2, workload.network_load, 125e6),
        };
        let mean = draw(1.0).work[stage].unwrap().total / COUNT as f64;
        let found = draw(load * capacity / mean);
        let off = (found.work[stage].unwrap().rate.unwrap() / capacity / load - 1.0).abs();
        let deviation = (workload.gap_c2 / COUNT as f64).sqrt();
        assert!(off < 6.0 * deviation + 0.01, "{}: load off by {off}", workload.letter);
    }
}

#[test]
fn windows_and_halves_are_split_by_time() {
    let requests = reads(&[0, 1, 5, 10]);
    let within = window(requests.iter().copied().map(Ok::<_, ()>), Nanos(1), Nanos(10));
    assert_eq!(within.map(|request| request.unwrap().at.0).collect::<Vec<_>>(), [1, 5]);
    let (first, second) = halves(&requests);
    assert_eq!((first.len(), second.len()), (2, 2));
    assert_eq!(halves(&[]).0.len(), 0);
}

proptest! {
    #[test]
    fn a_rotated_trace_has_the_same_requests_in_order_within_the_same_length(
        times in proptest::collection::vec(0..10_000_u64, 1..50),
        share in 0.0..1.0,
    ) {
        let mut times = times;
        times.sort_unstable();
        let requests: Vec<Request> = times
            .iter()
            .enumerate()
            .map(|(index, &time)| Request { at: Nanos(time), kind: Kind::Read, size: index as u64 + 1, offset: None })
            .collect();
        let rotated = rotate(&requests, share);
        prop_assert!(rotated.is_sorted_by_key(|request| request.at));
        let span = times[times.len() - 1] - times[0];
        prop_assert!(rotated[rotated.len() - 1].at.0 <= span + span / (times.len() as u64 - 1).max(1) + 1);
        let first = rotated[0].size as usize - 1;
        let sizes: Vec<u64> = rotated.iter().map(|request| request.size).collect();
        let expected: Vec<u64> = requests[first..].iter().chain(&requests[..first]).map(|request| request.size).collect();
        prop_assert_eq!(sizes, expected);
        for pair in rotated.windows(2).filter(|pair| pair[1].size > pair[0].size) {
            let (a, b) = (pair[0].size as usize - 1, pair[1].size as usize - 1);
            prop_assert_eq!(pair[1].at.0 - pair[0].at.0, times[b] - times[a]);
        }
    }

    #[test]
    fn no_trace_has_an_invalid_number(times in proptest::collection::vec(0..u64::MAX, 0..20)) {
        let mut times = times;
        times.sort_unstable();
        let found = summary(&reads(&times));
        let out = found.work[2];
        let numbers = [found.rate, found.gap_c2, found.peak_over_mean, found.read_share, found.mean_size];
        let work = out.map_or([None; 2], |out| [out.rate, out.peak_over_mean]);
        prop_assert!(found.peak_over_mean.iter().chain(&work[1]).all(|ratio| *ratio >= 1.0));
        prop_assert!(numbers.iter().chain(&work).flatten().all(|number| number.is_finite() && *number >= 0.0));
    }
}
