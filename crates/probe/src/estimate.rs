//! Rate of a path, estimated from the received packets of a train (Choreo, section 3.1).
//!
//! ```text
//! burst i        t_i from the first to the last packet received, n_i packets received
//! ends lost      t_i + a (packets missing before the first + after the last), a = mean time of one packet of the span
//! rate           P sum n_i (B - 1)/B / sum t_i
//! packets lost   at most MSS C / (RTT sqrt(loss)), C = sqrt(3/2)
//! ```
//!
//! The paper writes the rate twice: `P sum n_i / sum t_i`, and `P (N - 1)(1 - loss)/T`, which counts the gaps between
//! packets. The two rates differ by one part in B. This module uses the second form, which is also right for small
//! bursts: B packets without loss span B - 1 gaps.
//!
//! **Deviation.** A train sent much faster than the path's rate overflows a queue, and most of the train is lost. The
//! lost packets took no time on the link, so the correction for lost ends would give far too low a rate. The bound
//! under loss does not apply either, because TCP would not have lost these packets. The gap between the received
//! packets around missing ones distinguishes the two cases. If a full queue dropped the packets, the gap is as long as
//! between consecutive packets. If packets were lost behind the bottleneck, the gap includes their transmission time.
//! In the overrun case the rate is `P sum (n_i - 1) / sum t_i`, the data between the first and the last packet
//! received.

use serde::{Deserialize, Serialize};

use crate::collect::{Burst, TrainReport};
use crate::error::ProbeError;
use crate::train::Train;

/// C, the constant of TCP's rate bound under loss ("roughly sqrt(3/2)", section 3.1, after Mathis et al.).
pub const MATHIS_C: f64 = 1.224_744_871_391_589;
/// Ratio of arrival rate to sending rate above which no link on the path was slower than the sender. The value is a
/// choice of this project.
pub const NEAR: f64 = 0.8;
/// Payload difference between a UDP packet and a TCP segment of the same size on the wire: a TCP header has 20 bytes, a
/// UDP header 8.
const TCP_OVER_UDP: u32 = 12;

/// Sending statistics of a train.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendStatistics {
    /// Number of packets that the system accepted.
    pub packets: u64,
    /// Time within bursts in nanoseconds, without waits.
    pub busy_ns: u64,
    /// Time within bursts, in nanoseconds, for which the sender waited for its own interface.
    pub waited_ns: u64,
}

/// Estimate of a path from one train.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    /// Throughput of one TCP connection, in bits per second.
    pub rate_bps: f64,
    /// Rate of the train alone, without the bound under loss.
    pub train_bps: f64,
    /// Bound under loss; `None` without loss or with an unknown round-trip time.
    pub bound_bps: Option<f64>,
    /// Rate at which the sender sent packets while its interface accepted them; `None` if that took no time.
    pub sent_bps: Option<f64>,
    /// True if the sender was the limit instead of the path; the path's rate is then at least this value.
    pub sender_limited: bool,
    /// Share of packets that the network lost.
    pub loss: f64,
    /// True if the train overflowed a queue: it caused its own losses, and there is no bound.
    pub overran: bool,
    /// Round-trip time in nanoseconds, if known.
    pub rtt_ns: Option<u64>,
    /// Number of packets sent.
    pub sent: u64,
    /// Number of distinct packets received.
    pub received: u64,
    /// Number of packets that arrived and overflowed the receiver's socket buffer.
    pub overrun: u64,
    /// Standard deviation of the rates of single bursts relative to their mean; `None` for fewer than two bursts.
    pub spread: Option<f64>,
}

impl Estimate {
    /// Rejects an estimate that no train of this kind can give, because a peer may send anything.
    ///
    /// # Errors
    ///
    /// Returns [`ProbeError::Nothing`] with the violation.
    pub fn check(&self, train: &Train) -> Result<(), ProbeError> {
        let rates = [
            ("rate_bps", Some(self.rate_bps)),
            ("train_bps", Some(self.train_bps)),
            ("bound_bps", self.bound_bps),
            ("sent_bps", self.sent_bps),
        ];
        let positive = |rate: f64| rate.is_finite() && rate > 0.0;
        let invalid_rate = rates.into_iter().find_map(|(name, rate)| {
            rate.filter(|&rate| !positive(rate)).map(|rate| format!("{name} {rate}: expected a rate above 0"))
        });
        let packets = [("received", self.received), ("sent", self.sent)];
        let most = train.total_packets();
        let invalid_count = packets.into_iter().find(|&(_, count)| count > most);
        let invalid_count =
            invalid_count.map(|(name, count)| format!("{name} {count}: expected at most {most}"));
        let spread = self.spread.filter(|spread| !(spread.is_finite() && *spread >= 0.0));
        let invalid_spread = spread.map(|spread| format!("spread {spread}: expected a number from 0"));
        let invalid_loss = (!(0.0..=1.0).contains(&self.loss))
            .then(|| format!("loss {}: expected a share from 0 to 1", self.loss));
        match invalid_rate.or(invalid_count).or(invalid_spread).or(invalid_loss) {
            Some(wrong) => Err(ProbeError::Nothing(format!("impossible estimate: {wrong}"))),
            None => Ok(()),
        }
    }
}

/// Bits of a burst and their time in nanoseconds; `None` if fewer than two of its packets arrived.
fn span(burst: &Burst, train: &Train, overran: bool) -> Option<(f64, f64)> {
    let gaps = (burst.received >= 2).then(|| burst.highest - burst.lowest)?;
    let (bits, span_ns) = (f64::from(train.bytes) * 8.0, (burst.last_ns - burst.first_ns) as f64);
    if overran {
        return Some((bits * f64::from(burst.received - 1), span_ns));
    }
    let missing = burst.lowest + (train.packets - 1 - burst.highest);
    // B packets span B - 1 gaps, and each received packet accounts for an equal part.
    let part = f64::from(train.packets - 1) / f64::from(train.packets);
    let time = span_ns + span_ns / f64::from(gaps) * f64::from(missing);
    Some((bits * part * f64::from(burst.received), time))
}

/// Returns true if missing packets between received ones took no time. A full queue before the link then dropped them.
fn overran(received: &TrainReport) -> bool {
    let bursts = received.bursts.iter().filter(|burst| burst.received >= 2);
    let [mut steps, mut steps_ns, mut jumps, mut jumps_ns, mut missing] = [0.0; 5];
    for burst in bursts {
        steps += f64::from(burst.steps);
        steps_ns += burst.steps_ns as f64;
        jumps += f64::from(burst.received - 1 - burst.steps);
        jumps_ns += burst.jumps_ns as f64;
        missing += f64::from(burst.highest - burst.lowest + 1 - burst.received);
    }
    // The limit is halfway between two cases: a jump takes one packet time, or one more for each missing packet.
    steps > 0.0 && jumps > 0.0 && jumps_ns < steps_ns / steps * (jumps + missing / 2.0)
}

/// Estimates a path from one train.
///
/// # Errors
///
/// Returns [`ProbeError::Nothing`] if too little arrived (no burst with two packets at two different times), or for a
/// report that no receiver of this train can have produced.
pub fn estimate(
    train: &Train,
    sent: &SendStatistics,
    received: &TrainReport,
    rtt_ns: Option<u64>,
) -> Result<Estimate, ProbeError> {
    received.check(train)?;
    let arrived = received.packets();
    if arrived == 0 {
        let message = format!(
            "none of {} packets arrived: UDP may be filtered, or packets of {} bytes too large for the path",
            sent.packets, train.bytes
        );
        return Err(ProbeError::Nothing(message));
    }
    let overran = overran(received);
    let (mut bits, mut time) = (0.0, 0.0);
    let mut rates = Vec::with_capacity(received.bursts.len());
    for (burst_bits, ns) in received.bursts.iter().filter_map(|burst| span(burst, train, overran)) {
        bits += burst_bits;
        time += ns;
        if ns > 0.0 {
            rates.push(burst_bits / (ns / 1e9));
        }
    }
    if time <= 0.0 {
        let message = format!("{arrived} of {} packets arrived, too few for an estimate", sent.packets);
        return Err(ProbeError::Nothing(message));
    }
    let train_bps = bits / (time / 1e9);
    // Packets that overflowed the receiver's buffer had crossed the network. A peer may report anything, so the sum is
    // bounded.
    let delivered = arrived.saturating_add(received.overrun).min(sent.packets);
    let loss = if sent.packets == 0 { 0.0 } else { 1.0 - delivered as f64 / sent.packets as f64 };
    let bound_bps = rtt_ns.filter(|&rtt| rtt > 0 && loss > 0.0 && !overran).map(|rtt| {
        let segment = f64::from(train.bytes.saturating_sub(TCP_OVER_UDP)) * 8.0;
        segment * MATHIS_C / (rtt as f64 / 1e9 * loss.sqrt())
    });
    let sent_bits = sent.packets as f64 * f64::from(train.bytes) * 8.0;
    let sent_bps = (sent.busy_ns > 0).then(|| sent_bits / (sent.busy_ns as f64 / 1e9));
    Ok(Estimate {
        rate_bps: bound_bps.map_or(train_bps, |bound| bound.min(train_bps)),
        train_bps,
        bound_bps,
        sent_bps,
        sender_limited: sent_bps.is_some_and(|sent| train_bps > NEAR * sent),
        loss,
        overran,
        rtt_ns,
        sent: sent.packets,
        received: arrived,
        overrun: received.overrun,
        spread: spread(&rates),
    })
}

/// Standard deviation divided by mean.
fn spread(rates: &[f64]) -> Option<f64> {
    let count = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / count;
    let squares = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>();
    (rates.len() >= 2).then(|| (squares / (count - 1.0)).sqrt() / mean)
}
