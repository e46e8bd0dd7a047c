//! Trains over a simulated link with a known rate return that rate.

use leeward_probe::link::{HEADER_BYTES, Link, send};
use leeward_probe::{
    Collector, Estimate, Head, MATHIS_C, ProbeError, SendStatistics, Train, TrainReport, estimate,
};
use proptest::prelude::*;

/// Payload rate of a link.
fn payload(link: Link, train: &Train) -> f64 {
    link.rate_bps * f64::from(train.bytes) / (f64::from(train.bytes) + HEADER_BYTES as f64)
}

fn near(a: f64, b: f64, share: f64) -> bool {
    (a - b).abs() <= share * b
}

fn trains() -> impl Strategy<Value = Train> {
    (2..20_u32, 10..400_u32, 100..1472_u32, 0..2_000_000_u64)
        .prop_map(|(bursts, packets, bytes, gap_ns)| Train { bursts, packets, bytes, gap_ns })
}

proptest! {
    #[test]
    fn a_link_without_a_bucket_gives_its_rate_back(train in trains(), rate_bps in 1e6..9e8) {
        let link = Link { rate_bps, bucket_bytes: f64::from(train.bytes) + HEADER_BYTES as f64, queue_bytes: 1 << 30 };
        let (sent, received) = send(&train, 1e10, link, |_, _| true);
        let result = estimate(&train, &sent, &received, Some(100_000)).unwrap();
        // The first packet leaves at once from the bucket's content, like every first packet after a pause.
        prop_assert!(near(result.rate_bps, payload(link, &train), 0.01), "{result:?}");
        prop_assert_eq!((result.loss, result.bound_bps, result.sender_limited), (0.0, None, false));
    }

    #[test]
    fn a_bucket_adds_at_most_its_content_to_the_rate(
        train in trains(), rate_bps in 1e7..9e8, bucket in 2_000.0..500_000.0,
    ) {
        let link = Link { rate_bps, bucket_bytes: bucket, queue_bytes: 1 << 30 };
        let (sent, received) = send(&train, 1e10, link, |_, _| true);
        let result = estimate(&train, &sent, &received, None).unwrap();
        let rate = payload(link, &train);
        prop_assert!(result.rate_bps >= 0.99 * rate && result.rate_bps <= 1e10, "{result:?}");
        // During the bursts, at most the content of the bucket and its refill in pauses pass without delay.
        let bytes = train.total_bytes() as f64;
        let free = bucket + f64::from(train.bursts) * train.gap_ns as f64 * rate_bps / 8e9;
        let paid = bytes - free - f64::from(train.bursts * train.bytes);
        if paid > 0.0 {
            prop_assert!(result.rate_bps <= 1.02 * rate * bytes / paid, "{result:?}");
        }
    }

    #[test]
    fn losses_behind_the_link_reduce_the_rate_by_their_share(
        train in trains(), rate_bps in 1e6..9e8, lost in prop::collection::vec(any::<bool>(), 8000),
    ) {
        let link = Link { rate_bps, bucket_bytes: f64::from(train.bytes) + HEADER_BYTES as f64, queue_bytes: 1 << 30 };
        let (sent, received) = send(&train, 1e10, link, |burst, number| {
            !lost[(burst * train.packets + number) as usize]
        });
        let counted = received.bursts.iter().filter(|burst| burst.received >= 2);
        let (bursts, packets) = counted.fold((0, 0), |(b, p), burst| (b + 1, p + burst.received));
        prop_assume!(bursts > 0);
        // Without a round-trip time there is no bound.
        let result = estimate(&train, &sent, &received, None).unwrap();
        let share = f64::from(packets) / f64::from(bursts * train.packets);
        prop_assert!(near(result.rate_bps, share * payload(link, &train), 0.02), "{share} {result:?}");
        let bounded = estimate(&train, &sent, &received, Some(50_000)).unwrap();
        let bound = f64::from(train.bytes - 12) * 8.0 * MATHIS_C / (50e-6 * result.loss.sqrt());
        prop_assert!(near(bounded.rate_bps, bound.min(result.rate_bps), 1e-9), "{bounded:?}");
    }

    #[test]
    fn a_queue_that_a_train_overruns_does_not_hide_the_rate(
        train in trains(), rate_bps in 1e7..4e8, queue_bytes in 20_000..100_000_u64,
    ) {
        let link = Link { rate_bps, bucket_bytes: f64::from(train.bytes) + HEADER_BYTES as f64, queue_bytes };
        let (sent, received) = send(&train, 1e10, link, |_, _| true);
        let result = estimate(&train, &sent, &received, Some(10_000_000)).unwrap();
        if result.overran {
            prop_assert!(near(result.rate_bps, payload(link, &train), 0.02), "{result:?}");
            prop_assert_eq!(result.bound_bps, None);
        } else {
            // In this case no packet is missing between other packets, so the paper's correction for lost ends applies.
            prop_assert!(result.train_bps <= 1.05 * payload(link, &train), "{result:?}");
        }
        let inside = received.bursts.iter().any(|burst| {
            burst.received >= 2 && burst.highest - burst.lowest + 1 > burst.received
        });
        prop_assert_eq!(result.overran, inside);
    }

    #[test]
    fn arrival_at_the_sending_rate_is_flagged_as_sender_limited(train in trains(), rate_bps in 1e6..9e8) {
        let link = Link { rate_bps: 1e11, bucket_bytes: 3_000.0, queue_bytes: 1 << 30 };
        let (sent, received) = send(&train, rate_bps, link, |_, _| true);
        prop_assert!(estimate(&train, &sent, &received, None).unwrap().sender_limited);
    }

    #[test]
    fn any_report_gives_a_number_or_an_error(
        bursts in prop::collection::vec((0..12_u32, 0..12_u32, 0..12_u32, any::<u64>(), any::<u64>()), 3),
        packets: u64, busy_ns: u64, rtt: Option<u64>, overrun: u64,
    ) {
        let train = Train { bursts: 3, packets: 10, bytes: 100, gap_ns: 0 };
        let bursts = bursts.into_iter().map(|(received, lowest, highest, first_ns, last_ns)| {
            let steps = received.saturating_sub(2);
            let (steps_ns, jumps_ns) = (busy_ns, overrun);
            leeward_probe::Burst { received, lowest, highest, first_ns, last_ns, steps, steps_ns, jumps_ns }
        });
        let received = TrainReport { bursts: bursts.collect(), duplicates: 0, strangers: 0, overrun };
        let sent = SendStatistics { packets, busy_ns, waited_ns: 0 };
        if let Ok(result) = estimate(&train, &sent, &received, rtt) {
            let Estimate { rate_bps, train_bps, loss, .. } = result;
            prop_assert!(rate_bps.is_finite() && train_bps.is_finite() && rate_bps >= 0.0, "{result:?}");
            prop_assert!((0.0..=1.0).contains(&loss), "{result:?}");
            prop_assert!(result.spread.is_none_or(f64::is_finite), "{result:?}");
        }
    }
}

#[test]
fn lost_ends_of_a_train_are_compensated() {
    let train = Train { bursts: 1, packets: 11, bytes: 1000, gap_ns: 0 };
    let mut collector = Collector::new(1, train);
    // Numbers 2 to 8 of 0 to 10 arrive, 10 us apart. The complete burst would have taken 100 us.
    for number in 2..=8 {
        let at = 1_000_000 + u64::from(number) * 10_000;
        collector.packet(Some(Head { session: 1, burst: 0, number }), 1000, at);
    }
    let sent = SendStatistics { packets: 11, busy_ns: 10_000, waited_ns: 0 };
    let result = estimate(&train, &sent, &collector.finish(0), None).unwrap();
    let expected = 1000.0 * 8.0 * 10.0 * (7.0 / 11.0) / 100e-6;
    assert!(near(result.rate_bps, expected, 1e-12), "{result:?} {expected}");
    assert!(near(result.loss, 4.0 / 11.0, 1e-12));
}

#[test]
fn too_few_packets_give_no_rate() {
    let train = Train { bursts: 2, packets: 10, bytes: 1000, gap_ns: 0 };
    let sent = SendStatistics { packets: 20, busy_ns: 10_000, waited_ns: 0 };
    let none = estimate(&train, &sent, &Collector::new(1, train).finish(0), None).unwrap_err();
    assert!(none.to_string().contains("none of 20 packets arrived"), "{none}");
    let mut collector = Collector::new(1, train);
    for burst in 0..2 {
        collector.packet(Some(Head { session: 1, burst, number: 4 }), 1000, 77);
    }
    let few = estimate(&train, &sent, &collector.finish(0), None).unwrap_err();
    assert_eq!(few, ProbeError::Nothing("2 of 20 packets arrived, too few for an estimate".to_owned()));
}

#[test]
fn packets_dropped_by_the_receiver_are_not_network_loss() {
    let train = Train { bursts: 1, packets: 10, bytes: 1000, gap_ns: 0 };
    let mut collector = Collector::new(1, train);
    for number in 0..5 {
        collector.packet(Some(Head { session: 1, burst: 0, number }), 1000, u64::from(number) * 10);
    }
    let sent = SendStatistics { packets: 10, busy_ns: 10, waited_ns: 0 };
    let result = estimate(&train, &sent, &collector.finish(3), Some(100)).unwrap();
    assert!(near(result.loss, 0.2, 1e-12), "{result:?}");
}
