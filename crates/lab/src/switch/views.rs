//! Views of a lab that stands: its circuits, queues and bytes at a moment.

use std::time::Duration;

use leeward_circuits::switch::Via;
use leeward_packets::{Histogram, Records};

use super::SwitchLoop;
use crate::live::{Live, seconds};

/// Share of packets whose lateness is shown.
const SHARE: f64 = 0.99;

impl SwitchLoop<'_> {
    /// Shows a view of the lab now and then, in real time. Records of packets and days are then of the time since the
    /// view before, so that a lab may stand for long.
    pub(crate) fn show_every(&mut self, every: Duration) {
        self.view_every = every.as_nanos() as u64;
        self.next_view = 0;
    }

    /// Shows a view, if it is due.
    #[inline]
    pub(super) fn show_if_due(&mut self, real: u64) {
        if real >= self.next_view {
            self.next_view = real + self.view_every;
            let live = self.view(real);
            self.shared.show(live);
            self.dropped += self.records.dropped.packets;
            self.records = Records::default();
            self.timing.packets = Histogram::default();
            self.timing.days.clear();
            self.timing.weeks.clear();
        }
    }

    fn view(&self, real: u64) -> Live {
        let racks = self.settings.switch.racks;
        let (switch, pairs) = (&self.switch, || (0..racks * racks).map(|pair| (pair / racks, pair % racks)));
        let sent = |via: Via| {
            let of = |rack| (0..racks).map(|other| switch.sent_bytes(rack, other, via)).sum();
            (0..racks).map(of).collect()
        };
        Live {
            at_s: self.clock.at(real).since(self.began.unwrap_or_default()).as_secs_f64(),
            dilation: self.clock.dilation(),
            racks,
            circuits: pairs().filter(|&(from, to)| switch.has_circuit(from, to)).collect(),
            queued_packets: pairs().map(|(from, to)| switch.queued(from, to).0).collect(),
            capacity_packets: pairs().map(|(from, to)| switch.capacity(from, to)).collect(),
            packet_bytes: sent(Via::Packet),
            circuit_bytes: sent(Via::Circuit),
            dropped_packets: self.dropped + self.records.dropped.packets,
            lost_packets: self.timing.refused,
            demand_bytes: self.shared.adus().map_or_else(Vec::new, |adus| adus.demand()),
            late_p99_s: seconds(self.timing.packets.quantile(SHARE)),
        }
    }
}
