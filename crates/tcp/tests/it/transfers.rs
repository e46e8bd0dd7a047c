//! Properties of TCP over a toy link that hold for any treatment of packets by the network.

use leeward_fabric::Nanos;
use leeward_tcp::control::Control;
use leeward_tcp::{Ack, Settings, SettingsError};
use proptest::prelude::*;

use crate::support::{Fate, Link, Run};

fn controls() -> impl Strategy<Value = Settings> {
    let control =
        prop_oneof![Just(Control::Reno), Just(Control::Cubic), Just(Control::Dctcp), Just(Control::RETCP),];
    (control, 1u8..4, any::<bool>(), 500u32..9000, 1u32..4).prop_map(
        |(control, divisions, ecn, mss, every)| Settings {
            control,
            divisions,
            ecn,
            mss,
            ack_every: every,
            ..Settings::default()
        },
    )
}

/// Fates of packets in order, repeated cyclically.
fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        12 => Just(Fate::Arrives),
        2 => (0u64..5_000_000).prop_map(|late| Fate::Late(Nanos(late))),
        1 => Just(Fate::Lost),
        1 => Just(Fate::Marked),
    ];
    proptest::collection::vec(fate, 1..400)
        .prop_filter("some must arrive", |fates| fates.contains(&Fate::Arrives))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_byte_arrives_once_and_in_order(
        settings in controls(),
        segments in fates(),
        acks in fates(),
        writes in proptest::collection::vec(1u64..400_000, 1..6),
        queue in 2usize..60,
    ) {
        let link = Link {
            ns_per_byte: 1,
            delay: Nanos(100_000),
            queue,
            segments: |n: u64, _: &_| segments[n as usize % segments.len()],
            acks: |n: u64, ack: &mut Ack| {
                ack.ece |= n % 97 > 60;
                acks[n as usize % acks.len()]
            },
        };
        let mut run = Run::new(settings, link);
        let (mut delivered, mut acknowledged, mut steps) = (0, 0, 0u64);
        for (turn, bytes) in writes.iter().enumerate() {
            run.sender.write(*bytes);
            for _ in 0..100 * turn {
                run.step();
            }
        }
        run.sender.close();
        let total: u64 = writes.iter().sum();
        while run.step() {
            steps += 1;
            if steps % 41 == 0 {
                run.sender.set_division((steps / 41 % u64::from(settings.divisions)) as u8);
                run.receiver.set_division((steps / 41 % u64::from(settings.divisions)) as u8);
            }
            prop_assert!(run.receiver.delivered() >= delivered && run.receiver.delivered() <= total);
            prop_assert!(run.sender.acknowledged() >= acknowledged);
            prop_assert!(run.sender.acknowledged() <= run.receiver.delivered());
            prop_assert!(run.sender.in_flight() <= run.sender.sent() - run.sender.acknowledged());
            prop_assert!(run.sender.window() >= u64::from(settings.mss));
            delivered = run.receiver.delivered();
            acknowledged = run.sender.acknowledged();
            prop_assert!(steps < 2_000_000, "no end: {:?}", run.sender);
        }
        prop_assert!(run.sender.is_finished());
        prop_assert_eq!((run.receiver.delivered(), run.sender.acknowledged()), (total, total));
        prop_assert_eq!(run.sender.in_flight(), 0);
    }
}

#[test]
fn the_same_network_gives_the_same_run() {
    let run = || {
        let link = Link {
            ns_per_byte: 1,
            delay: Nanos(50_000),
            queue: 30,
            segments: |n: u64, _: &_| if n * n % 101 == 7 { Fate::Lost } else { Fate::Arrives },
            acks: |n: u64, _: &mut _| if n % 53 == 9 { Fate::Late(Nanos(300_000)) } else { Fate::Arrives },
        };
        let mut run = Run::new(Settings { control: Control::Cubic, ..Settings::default() }, link);
        run.sender.write(30_000_000);
        let mut trace = Vec::new();
        while run.step() {
            trace.push((run.now, run.sender.window(), run.sender.in_flight(), run.receiver.delivered()));
        }
        (trace, run.sender.counts())
    };
    let (first, counts) = run();
    assert!(counts.recoveries > 5, "{counts:?}");
    assert_eq!((first, counts), run());
}

#[test]
fn invalid_settings_are_named() {
    let settings = Settings::default();
    let cases = [
        Settings { mss: 0, ..settings },
        Settings { divisions: 0, ..settings },
        Settings { control: Control::Retcp { alpha: f64::NAN, beta: 0.5 }, ..settings },
        Settings { control: Control::Retcp { alpha: 2.0, beta: 1.5 }, ..settings },
        Settings { min_timeout: Nanos(500_000_000_000), ..settings },
    ];
    let errors: Vec<String> = cases.iter().map(|case| case.check().unwrap_err().to_string()).collect();
    let max = settings.max_timeout;
    let expected = [
        "mss: 0: must be above 0".to_string(),
        "divisions: 0: must be above 0".into(),
        "alpha: NaN: must be from 1 to 1000".into(),
        "beta: 1.5: must be from 0 to 1".into(),
        format!("max_timeout: {max}: must not be below min_timeout, which is {}", Nanos(500_000_000_000)),
    ];
    assert_eq!(errors, expected);
    assert_eq!(cases[0].check(), Err(SettingsError::Zero { name: "mss" }));
}
