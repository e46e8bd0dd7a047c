//! The contents of the vectors.

use super::format::{DemandRecord, FadeRecord, SampleRecord, Vector};
use super::script::*;

pub fn all() -> Vec<Vector> {
    vec![
        pressure_is_not_load(),
        steady_stream(),
        reservation_before_and_after_it_starts(),
        work_that_leaves(),
        one_order(),
        another_order(),
        late_report(),
        started_late(),
        missing_strict(),
        missing_sinbad(),
        initial_zero(),
        gaps_in_time(),
        windows_that_overlap(),
        sum_of_hosts(),
        counter_takes_over(),
        relief_is_floored(),
        face_values_and_their_end(),
        never_started(),
        release_of_started_work(),
        several_in_one_window(),
        reservations_with_class_counters(),
        what_if(),
        peak_held(),
        belief(),
    ]
}

fn pressure_is_not_load() -> Vector {
    vector(
        "pressure_is_not_load",
        "A block of 256 MiB, one second before the next report, fills a 2 Gb/s link for Sinbad; for best effort it \
         takes what its disk can write. At the next window the pressure is gone.",
    )
    .report(1000, &[sample(DOWNLINK, 0, 1000, 400 * MBPS)])
    .commit(1000, &[block("block", Some(400 * MBPS))])
    .report(2000, &[sample(DOWNLINK, 1000, 2000, 400 * MBPS)])
    .exact()
}

fn steady_stream() -> Vector {
    vector("steady_stream", "As telemetry takes in a stream, what is pending of it fades: the sum stays.")
        .seconds(0, 1, |_| 300 * MBPS)
        .commit(1000, &[stream("stream", 100 * MBPS)])
        .mark_started(1000, "stream", 1000)
        .seconds(1, 7, |_| 400 * MBPS)
}

fn reservation_before_and_after_it_starts() -> Vector {
    vector(
        "reservation",
        "A reservation of 300 Mb/s with a mean of 100: best effort loses the mean, before it starts and after, and \
         admission loses the rate.",
    )
    .with(|vector| vector.cluster.promises = true)
    .seconds(0, 1, |_| 0)
    .commit(1000, &[reservation("volume", 100 * MBPS, 300 * MBPS)])
    .seconds(1, 2, |_| 0)
    .mark_started(2000, "volume", 2000)
    .seconds(2, 6, |_| 100 * MBPS)
}

fn work_that_leaves() -> Vector {
    vector(
        "work_that_leaves",
        "A move of 200 Mb/s off a link counts at once, and stays counted as telemetry follows.",
    )
    .seconds(0, 1, |_| 900 * MBPS)
    .commit(1000, &[stream("moved", 200 * MBPS).relieves()])
    .seconds(1, 2, |_| 900 * MBPS)
    .mark_started(2000, "moved", 2000)
    .seconds(2, 8, |_| 700 * MBPS)
}

/// Three entries of different kinds; two are released again.
fn three(name: &str, about: &str) -> Vector {
    vector(name, about).with(|vector| vector.cluster.promises = true).seconds(0, 1, |_| 100 * MBPS).exact()
}

fn one_order() -> Vector {
    three("one_order", "Commits and releases in one order; ends in the same numbers as `another_order`.")
        .commit(1200, &[stream("a", 70 * MBPS)])
        .commit(1200, &[block("b", Some(90 * MBPS)), reservation("c", 10 * MBPS, 30 * MBPS)])
        .release(1200, &["a"])
        .release(1200, &["b"])
}

fn another_order() -> Vector {
    three("another_order", "The same commits and releases as in `one_order`, in another order.")
        .commit(1200, &[block("b", Some(90 * MBPS))])
        .release(1200, &["b"])
        .commit(1200, &[reservation("c", 10 * MBPS, 30 * MBPS), stream("a", 70 * MBPS)])
        .release(1200, &["a"])
}

fn late_report() -> Vector {
    vector(
        "late_report",
        "A report that left before a commit and arrives after it clears nothing; the next one does.",
    )
    .seconds(0, 1, |_| 200 * MBPS)
    .commit(2100, &[block("block", Some(300 * MBPS)).fade(FadeRecord::AtNextWindow)])
    .report(2200, &[sample(DOWNLINK, 1000, 2000, 200 * MBPS)])
    .report(3000, &[sample(DOWNLINK, 2000, 3000, 200 * MBPS)])
    .report(3100, &[sample(DOWNLINK, 1000, 2000, 900 * MBPS)])
    .exact()
}

fn started_late() -> Vector {
    vector(
        "started_late",
        "A start that is told after a window was taken in counts from when it was, in the windows after: also in one that \
         reaches farther back than the last.",
    )
    .seconds(0, 1, |_| 300 * MBPS)
    .commit(1000, &[stream("stream", 100 * MBPS)])
    .report(2000, &[sample(DOWNLINK, 1000, 2000, 350 * MBPS)])
    .mark_started(2100, "stream", 1500)
    .report(2200, &[sample(DOWNLINK, 1200, 2200, 370 * MBPS)])
    .report(3200, &[sample(DOWNLINK, 2200, 3200, 400 * MBPS)])
}

fn missing_strict() -> Vector {
    vector(
        "missing_strict",
        "Three intervals after its last window a link is unknown and takes no best effort.",
    )
    .seconds(0, 1, |_| 500 * MBPS)
    .advance(4000)
    .advance(4001)
    .report(6000, &[sample(DOWNLINK, 5000, 6000, 800 * MBPS)])
}

fn missing_sinbad() -> Vector {
    vector(
        "missing_sinbad",
        "A report that does not come counts as one of a full link, half an interval after it was due; one that comes \
         later takes its place. What waits for a report does not wait for ever, and what fades goes on fading.",
    )
    .with(|vector| vector.settings.missing = "sinbad".into())
    .seconds(0, 1, |_| 500 * MBPS)
    .commit(1200, &[block("block", Some(100 * MBPS)).fade(FadeRecord::AtNextWindow)])
    .commit(1200, &[stream("stream", 100 * MBPS).starts(1500)])
    .advance(2499)
    .advance(2500)
    .advance(3500)
    .report(3600, &[sample(DOWNLINK, 1000, 2000, 550 * MBPS)])
    .report(4000, &[sample(DOWNLINK, 3000, 4000, 600 * MBPS)])
}

fn initial_zero() -> Vector {
    vector("initial_zero", "Sinbad's estimate starts at zero, and what is missing counts from the start.")
        .with(|vector| {
            vector.settings.missing = "sinbad".into();
            vector.settings.initial = "zero".into();
        })
        .advance(0)
        .seconds(0, 2, |_| 1000 * MBPS)
        .advance(3500)
}

fn gaps_in_time() -> Vector {
    vector(
        "gaps_in_time",
        "A report weighs by the time since the last window, so gaps do not slow the filter; its own window says what \
         it shows.",
    )
    .seconds(0, 1, |_| 300 * MBPS)
    .commit(1000, &[stream("stream", 200 * MBPS).starts(1500)])
    .report(3000, &[sample(DOWNLINK, 2000, 3000, 500 * MBPS)])
    .report(3500, &[sample(DOWNLINK, 3000, 3500, 500 * MBPS)])
    .report(6000, &[sample(DOWNLINK, 3500, 6000, 500 * MBPS)])
}

fn windows_that_overlap() -> Vector {
    vector(
        "windows_that_overlap",
        "Windows of two seconds, one each second: each covers the start of the stream in another part.",
    )
    .report(2000, &[sample(DOWNLINK, 0, 2000, 300 * MBPS)])
    .commit(2000, &[stream("stream", 100 * MBPS).starts(2500)])
    .report(3000, &[sample(DOWNLINK, 1000, 3000, 325 * MBPS)])
    .report(4000, &[sample(DOWNLINK, 2000, 4000, 375 * MBPS)])
    .report(5000, &[sample(DOWNLINK, 3000, 5000, 400 * MBPS)])
}

fn sum_of_hosts() -> Vector {
    let both = |from, until, loads: [i64; 2]| {
        [0, 1].map(|host| sample(HOST_IN[host], from, until, loads[host] * MBPS))
    };
    vector(
        "sum_of_hosts",
        "A link without a counter is the sum of its hosts. Its window is the one they all have; a silent host counts \
         with the rate of its interface, one known to be down with nothing.",
    )
    .with(|vector| vector.read = vec![DOWNLINK, HOST_IN[0]])
    .report(1000, &[sample(HOST_IN[0], 0, 1000, 300 * MBPS)])
    .report(1100, &[sample(HOST_IN[1], 100, 1100, 200 * MBPS)])
    .report(2000, &both(1000, 2000, [300, 200]))
    .commit(2000, &[block("block", Some(100 * MBPS)).fade(FadeRecord::AtNextWindow).on(&[DOWNLINK, HOST_IN[0]])])
    .commit(2000, &[stream("stream", 100 * MBPS).starts(2500).on(&[DOWNLINK, HOST_IN[0]])])
    .report(3000, &[sample(HOST_IN[0], 2000, 3000, 350 * MBPS)])
    .report(3050, &[sample(HOST_IN[1], 2000, 3000, 200 * MBPS)])
    .report(4000, &[sample(HOST_IN[0], 3000, 4000, 400 * MBPS)])
    .report(6000, &[sample(HOST_IN[0], 5000, 6000, 400 * MBPS)])
    .advance(6001)
    .set_health(6100, 1, false)
    .report(7000, &both(6000, 7000, [400, 200]))
    .set_health(7100, 1, true)
    .report(8000, &both(7100, 8000, [400, 150]))
}

fn counter_takes_over() -> Vector {
    vector(
        "counter_takes_over",
        "Once a link has a counter of its own, the sum of its hosts plays no part any more, not even when the counter \
         falls silent.",
    )
    .report(1000, &HOST_IN.map(|link| sample(link, 0, 1000, 400 * MBPS)))
    .commit(1000, &[stream("stream", 100 * MBPS).starts(1500)])
    .report(2000, &HOST_IN.map(|link| sample(link, 1000, 2000, 425 * MBPS)))
    .report(2100, &[sample(DOWNLINK, 1000, 2000, 250 * MBPS)])
    .report(3000, &HOST_IN.map(|link| sample(link, 2000, 3000, 450 * MBPS)))
    .report(3100, &[sample(DOWNLINK, 2000, 3000, 300 * MBPS)])
    .report(6000, &HOST_IN.map(|link| sample(link, 5000, 6000, 450 * MBPS)))
    .advance(6001)
}

fn relief_is_floored() -> Vector {
    vector(
        "relief_is_floored",
        "No more can leave than telemetry shows, and what is yet to come is not set off against it.",
    )
    .seconds(0, 1, |_| 150 * MBPS)
    .commit(1000, &[stream("moved", 200 * MBPS).relieves().starts(1000)])
    .commit(1000, &[stream("new", 300 * MBPS)])
    .seconds(1, 3, |_| 0)
}

fn face_values_and_their_end() -> Vector {
    vector(
        "face_values_and_their_end",
        "Elastic work counts with its share of the path when it was placed, or with its cap. It leaves when it would \
         be over at that rate; its flows stay until release.",
    )
    .seconds(0, 1, |_| 1900 * MBPS)
    .commit(1000, &[block("shared", None).starts(1000)])
    .commit(1000, &[block("capped", Some(100 * MBPS)).starts(1000)])
    .seconds(1, 2, |_| 2000 * MBPS)
    .advance(2073)
    .advance(2074)
    .seconds(2, 3, |_| 1900 * MBPS)
    .release(3200, &["shared"])
}

fn never_started() -> Vector {
    let after = FadeRecord::After { ttl_ns: ms(2000) };
    vector("never_started", "What has not started within its time is dropped; what has, fades and stays.")
        .seconds(0, 1, |_| 100 * MBPS)
        .commit(1000, &[stream("idle", 300 * MBPS).fade(after), stream("busy", 200 * MBPS).fade(after)])
        .mark_started(1500, "busy", 1500)
        .advance(2999)
        .advance(3000)
        .mark_started(3000, "idle", 3000)
        .exact()
}

fn release_of_started_work() -> Vector {
    vector(
        "release_of_started_work",
        "When started work ends, what telemetry shows of it is taken off at once, and fades as telemetry follows.",
    )
    .seconds(0, 1, |_| 500 * MBPS)
    .commit(1000, &[stream("stream", 200 * MBPS).starts(1000)])
    .seconds(1, 4, |_| 700 * MBPS)
    .release(4000, &["stream"])
    .seconds(4, 8, |_| 500 * MBPS)
}

fn several_in_one_window() -> Vector {
    vector(
        "several_in_one_window",
        "Entries that start and end in the middle of a window are seen in the part that the window covers, each by \
         itself; one that ends before it was to start is never seen.",
    )
    .seconds(0, 1, |_| 200 * MBPS)
    .commit(1000, &[stream("a", 100 * MBPS).starts(1250)])
    .commit(1000, &[stream("b", 40 * MBPS).starts(1600), stream("later", 500 * MBPS).starts(2900)])
    .commit(1000, &[stream("c", 60 * MBPS)])
    .mark_started(1800, "c", 1500)
    .release(1800, &["b", "later"])
    .report(2000, &[sample(DOWNLINK, 1000, 2000, 313 * MBPS)])
    .seconds(2, 5, |_| 360 * MBPS)
}

fn reservations_with_class_counters() -> Vector {
    let sample = |second: u64, load: i64, guaranteed: i64| SampleRecord {
        guaranteed_bps: Some(guaranteed * MBPS),
        ..sample(DOWNLINK, 1000 * second, 1000 * (second + 1), load * MBPS)
    };
    vector(
        "reservations_with_class_counters",
        "Where counters tell the classes apart, a reservation that is quiet keeps its mean free for itself, and one \
         that is busier than its mean counts as it is.",
    )
    .with(|vector| vector.cluster.promises = true)
    .report(1000, &[sample(0, 600, 0)])
    .commit(1000, &[reservation("volume", 100 * MBPS, 300 * MBPS).starts(1000)])
    .report(2000, &[sample(1, 600, 0)])
    .report(3000, &[sample(2, 600, 0)])
    .report(4000, &[sample(3, 1000, 400)])
    .report(5000, &[sample(4, 1000, 400)])
    .commit(5000, &[stream("stream", 50 * MBPS)])
}

fn what_if() -> Vector {
    let next_block = block("next", Some(400 * MBPS)).fade(FadeRecord::AtNextWindow).of(owner("file", 7));
    vector(
        "what_if",
        "A view adds what would be placed and takes out what an owner has there, started or not; the ledger stays as \
         it is.",
    )
    .seconds(0, 1, |_| 400 * MBPS)
    .commit(1000, &[stream("mine", 300 * MBPS).of(owner("app", 3)).starts(1000)])
    .commit(1500, &[block("block", Some(200 * MBPS)).of(owner("app", 3))])
    .commit(1500, &[stream("other", 100 * MBPS).of(owner("app", 4))])
    .view(1750, std::slice::from_ref(&next_block), &[])
    .view(1750, &[], &[owner("app", 3)])
    .view(1750, &[next_block], &[owner("app", 3)])
    .advance(1750)
    .seconds(1, 2, |_| 700 * MBPS)
    .view(2000, &[stream("moved", 100 * MBPS).relieves()], &[owner("app", 3)])
}

fn peak_held() -> Vector {
    let bursty = DemandRecord::Stream { mean_bps: 100_000_000, peak_bps: 250_000_000 };
    vector(
        "peak_held",
        "With `hold_peak`, what a stream's peak is above its mean stays pending until it is released.",
    )
    .with(|vector| vector.settings.hold_peak = true)
    .seconds(0, 1, |_| 300 * MBPS)
    .commit(1000, &[entry("bursty", bursty)])
    .mark_started(1000, "bursty", 1000)
    .seconds(1, 3, |_| 400 * MBPS)
    .release(3000, &["bursty"])
    .seconds(3, 5, |_| 300 * MBPS)
}

fn belief() -> Vector {
    vector(
        "belief",
        "Numbers follow the capacity that is believed at once; a link over 75 % in each window since is hot since \
         then.",
    )
    .with(|vector| vector.cluster.promises = true)
    .seconds(0, 1, |_| 1600 * MBPS)
    .seconds(1, 3, |_| 1400 * MBPS)
    .commit(3000, &[reservation("volume", 0, 1500 * MBPS)])
    .set_capacity(3000, DOWNLINK, 1000 * MBPS)
    .seconds(3, 5, |_| 800 * MBPS)
    .set_capacity(5000, DOWNLINK, 2000 * MBPS)
    .seconds(5, 6, |_| 800 * MBPS)
}
