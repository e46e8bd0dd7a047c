//! Messages between cells: each is late by a drawn time, or lost.
//!
//! Draws belong to the sender and the number of its message, so messages of one cell never shift those of another.

use leeward_fabric::Nanos;
use leeward_registry::random::{Draws, Kind};

const LOSS: Kind = Kind::named("cells.loss");
const DELAY: Kind = Kind::named("cells.delay");

/// The way between any two cells.
#[derive(Debug)]
pub(crate) struct Channel {
    loss: f64,
    delay: Nanos,
    jitter: Nanos,
    draws: [Draws; 2],
    /// Number of messages of each sender so far.
    sent: Vec<u64>,
}

impl Channel {
    /// Creates a way that loses a share `loss` of messages. A message takes `delay`, and up to `jitter` more.
    pub fn new(cells: u32, loss: f64, (delay, jitter): (Nanos, Nanos), seed: u64) -> Channel {
        let draws = [Draws::new(seed, LOSS), Draws::new(seed, DELAY)];
        Channel { loss, delay, jitter, draws, sent: vec![0; cells as usize] }
    }

    /// Returns the time after which the next message of a cell arrives; `None` if it is lost.
    pub fn send(&mut self, from: u32) -> Option<Nanos> {
        let number = &mut self.sent[from as usize];
        *number += 1;
        let [lost, late] = self.draws.map(|draws| draws.draw(u64::from(from), *number));
        let jitter = Nanos((late * self.jitter.0 as f64) as u64);
        (lost >= self.loss).then_some(self.delay.plus(jitter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_messages_is_lost_and_the_others_are_late_within_bounds() {
        let times = (Nanos(5), Nanos(10));
        let mut channel = Channel::new(2, 0.25, times, 7);
        let arrived: Vec<Nanos> = (0..40_000).filter_map(|_| channel.send(1)).collect();
        let lost = 1.0 - arrived.len() as f64 / 40_000.0;
        // The standard deviation of the share is 0.002.
        assert!((lost - 0.25).abs() < 0.01, "{lost}");
        assert!(arrived.iter().all(|&late| (Nanos(5)..=Nanos(15)).contains(&late)));
        let perfect = &mut Channel::new(1, 0.0, times, 7);
        assert!((0..1000).all(|_| perfect.send(0).is_some()));
        let deaf = &mut Channel::new(1, 1.0, times, 7);
        assert!((0..1000).all(|_| deaf.send(0).is_none()));
    }
}
