//! Connections between hosts. A channel is a connection in each direction. It carries one call at a time: the request
//! there, the answer back. A channel that is free is used again by the next call between its hosts, as programs keep their
//! connections open; after an idle time its window starts again, as the TCP
//! settings say.

use std::collections::BTreeMap;

use leeward_circuits::timers::NEVER;
use leeward_fabric::HostId;
use leeward_tcp::{Receiver, Sender, Settings, SettingsError};

use crate::network::Path;

/// Both ends of a connection in one direction.
pub(crate) struct Connection {
    pub sender: Sender,
    pub receiver: Receiver,
    /// Ports of data, and of acknowledgements.
    pub there: Path,
    pub back: Path,
    pub class: u8,
    /// Bytes in the queue of the sender's host. `is_held` is true if more bytes wait for them to leave.
    pub in_host: u64,
    pub is_held: bool,
    /// Times of the next checks of the timers of both ends. If a deadline is later by then, another check follows.
    pub sender_check: u64,
    pub receiver_check: u64,
}

impl Connection {
    fn new(settings: &Settings, there: Path, back: Path, class: u8) -> Result<Connection, SettingsError> {
        Ok(Connection {
            sender: Sender::new(*settings)?,
            receiver: Receiver::new(settings)?,
            there,
            back,
            class,
            in_host: 0,
            is_held: false,
            sender_check: NEVER,
            receiver_check: NEVER,
        })
    }

    /// True if all bytes that were written have arrived.
    pub fn is_delivered(&self) -> bool {
        self.receiver.delivered() == self.sender.written()
    }
}

/// Hosts and class of a channel.
type Ends = (HostId, HostId, u8);

/// All connections. Channel `n` has the connections `2 n` to the server and `2 n + 1` back.
#[derive(Default)]
pub(crate) struct Connections {
    all: Vec<Connection>,
    /// Ends of each channel, and its call; `None` if it is free.
    channels: Vec<(Ends, Option<u32>)>,
    /// Free channels. The last one was used last.
    free: BTreeMap<Ends, Vec<u32>>,
}

impl Connections {
    #[inline]
    pub fn get(&mut self, connection: u32) -> &mut Connection {
        &mut self.all[connection as usize]
    }

    /// All connections, by number.
    pub fn all(&self) -> &[Connection] {
        &self.all
    }

    /// Connection of a channel to the server, and back.
    pub fn of_channel(channel: u32) -> [u32; 2] {
        [2 * channel, 2 * channel + 1]
    }

    /// Call of a connection's channel, and true for the connection to the server.
    pub fn call_of(&self, connection: u32) -> (Option<u32>, bool) {
        (self.channels[connection as usize / 2].1, connection.is_multiple_of(2))
    }

    /// Takes a channel for a call: a free one, or a new one with paths from `paths`, there and back.
    ///
    /// # Errors
    /// Returns an error for invalid TCP settings.
    pub fn take(
        &mut self,
        ends: Ends,
        call: u32,
        settings: &Settings,
        paths: impl FnOnce() -> [Path; 2],
    ) -> Result<u32, SettingsError> {
        if let Some(channel) = self.free.get_mut(&ends).and_then(Vec::pop) {
            self.channels[channel as usize].1 = Some(call);
            return Ok(channel);
        }
        let [there, back] = paths();
        let (_, _, class) = ends;
        self.all.push(Connection::new(settings, there, back, class)?);
        self.all.push(Connection::new(settings, back, there, class)?);
        self.channels.push((ends, Some(call)));
        Ok((self.channels.len() - 1) as u32)
    }

    /// Frees the channel of a call that has ended.
    pub fn release(&mut self, channel: u32) {
        let (ends, call) = &mut self.channels[channel as usize];
        *call = None;
        self.free.entry(*ends).or_default().push(channel);
    }
}
