//! The network: a port for each link of a tree, and the packets between them.

mod packet;
mod port;

use leeward_fabric::{Bandwidth, Cluster, Endpoint, Fabric, HostId, ResourceId, ResourceKind};

use packet::Packets;
pub(crate) use packet::{Packet, Path, Payload};
pub(crate) use port::Limits;
use port::{Offer, Port};

use crate::agenda::Agenda;
use crate::event::Event;
use crate::records::Traffic;

/// Settings of the network.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Settings {
    /// Propagation delay of each link, in nanoseconds.
    pub delay: u64,
    /// Limits of each port of a switch.
    pub limits: Limits,
    /// Weights of the classes of service.
    pub weights: Vec<u32>,
}

/// All ports, and the packets on their way.
pub(crate) struct Network {
    /// Ports of the links, by resource.
    ports: Vec<Port>,
    packets: Packets,
}

impl Network {
    /// Creates the network of a tree.
    pub fn new(cluster: &Cluster, settings: &Settings) -> Network {
        let Cluster { fabric, capacities, .. } = cluster;
        let port = |resource: ResourceId| {
            let kind = fabric.kind(resource);
            let rate = Bandwidth(u64::try_from(capacities.get(resource).0).unwrap_or(0));
            // A host's own queue holds all that its connections give it, in order.
            let (limits, weights) = match kind {
                ResourceKind::HostEgress => (Limits::NONE, &settings.weights[..1]),
                _ => (settings.limits, &settings.weights[..]),
            };
            Port::new(rate, settings.delay, limits, weights, is_counted(kind))
        };
        let links = fabric.all_resources().take(fabric.link_count());
        Network { ports: links.map(port).collect(), packets: Packets::default() }
    }

    /// Sends a packet from its host.
    #[inline]
    pub fn send(&mut self, now: u64, packet: Packet, agenda: &mut Agenda<Event>) {
        let number = self.packets.add(packet);
        self.forward(now, number, agenda);
    }

    /// Size and connection of a packet with data that has just left its host; `None` for any other packet.
    #[inline]
    pub fn left_host(&self, number: u32) -> Option<(u32, u32)> {
        let packet = self.packets.get(number);
        let is_data = matches!(packet.payload, Payload::Data(_));
        (is_data && packet.position == 1).then_some((packet.connection, packet.bytes))
    }

    /// Moves a packet to its next port. Returns it if it has reached its host.
    #[inline]
    pub fn arrive(&mut self, now: u64, number: u32, agenda: &mut Agenda<Event>) -> Option<Packet> {
        if self.packets.get(number).port().is_none() {
            return Some(self.packets.take(number));
        }
        self.forward(now, number, agenda);
        None
    }

    /// Offers a packet to its next port.
    #[inline]
    fn forward(&mut self, now: u64, number: u32, agenda: &mut Agenda<Event>) {
        let Some(port) = self.packets.get(number).port() else { return };
        match self.ports[port as usize].offer(now, number, &mut self.packets) {
            Offer::Sent(arrives) => {
                self.packets.get_mut(number).position += 1;
                agenda.push(arrives, Event::Packet(number));
            }
            Offer::Waits(free_at) => {
                if let Some(at) = free_at {
                    agenda.push(at, Event::Port(port));
                }
            }
            Offer::Dropped => {
                self.packets.take(number);
            }
        }
    }

    /// Sends the next packet of a port that is free.
    pub fn serve(&mut self, now: u64, port: u32, agenda: &mut Agenda<Event>) {
        let Some(departure) = self.ports[port as usize].serve(now, &mut self.packets) else { return };
        self.packets.get_mut(departure.packet).position += 1;
        agenda.push(departure.arrives, Event::Packet(departure.packet));
        if let Some(at) = departure.free_at {
            agenda.push(at, Event::Port(port));
        }
    }

    /// Changes the rate of a link.
    pub fn set_rate(&mut self, link: ResourceId, rate: Bandwidth) {
        self.ports[link.index()].set_rate(rate);
    }

    /// Takes the traffic of a link by class since it was last taken.
    pub fn take_traffic(&mut self, link: ResourceId) -> Vec<Traffic> {
        self.ports[link.index()].take_traffic()
    }
}

/// Ports of the links from a host to another.
pub(crate) fn path(fabric: &Fabric, from: HostId, to: HostId) -> Path {
    let mut hops = Vec::new();
    fabric.path(&[Endpoint::Host(from), Endpoint::Host(to)], &mut hops);
    Path::new(hops.iter().map(|hop| hop.resource.0))
}

/// True for links of racks and pods, whose traffic is telemetry.
pub(crate) fn is_counted(kind: ResourceKind) -> bool {
    !matches!(kind, ResourceKind::HostEgress | ResourceKind::HostIngress)
}
