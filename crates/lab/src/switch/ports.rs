//! Devices of hosts: wait for frames, read and write them.

use std::fs::File;
use std::mem::MaybeUninit;

use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

use crate::error::LabError;

/// Hosts whose frames are read before the switch looks at its own events.
const AT_ONCE: usize = 64;

/// Devices, by number of the host.
pub(super) struct Ports<'a> {
    devices: &'a [File],
    poll: OwnedFd,
    /// Hosts that have sent a frame.
    ready: Vec<u32>,
}

impl<'a> Ports<'a> {
    pub(super) fn new(devices: &'a [File]) -> Result<Ports<'a>, LabError> {
        let failed = |error: Errno| LabError::system("epoll")(error.into());
        let poll = epoll::create(CreateFlags::CLOEXEC).map_err(failed)?;
        for (number, device) in devices.iter().enumerate() {
            let data = EventData::new_u64(number as u64);
            epoll::add(&poll, device, data, EventFlags::IN).map_err(failed)?;
        }
        Ok(Ports { ready: Vec::with_capacity(AT_ONCE), devices, poll })
    }

    /// Waits until a host has sent a frame, for at most `nanos`. Returns the number of hosts that have.
    pub(super) fn wait(&mut self, nanos: u64) -> Result<usize, LabError> {
        let timeout =
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 };
        self.ready.clear();
        let mut events = [const { MaybeUninit::<Event>::uninit() }; AT_ONCE];
        match epoll::wait(&self.poll, &mut events[..], Some(&timeout)) {
            Ok((events, _)) => self.ready.extend(events.iter().map(|event| event.data.u64() as u32)),
            Err(Errno::INTR) => {}
            Err(error) => return Err(LabError::system("epoll")(error.into())),
        }
        Ok(self.ready.len())
    }

    /// Number of the `index`th host that is ready.
    pub(super) fn ready(&self, index: usize) -> usize {
        self.ready[index] as usize
    }

    /// Reads a frame of a host; returns its length, or 0 if there is none.
    pub(super) fn read(&self, host: usize, slot: &mut [u8]) -> Result<usize, LabError> {
        match rustix::io::read(&self.devices[host], slot) {
            Ok(length) => Ok(length),
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(error) => Err(LabError::system("read from a host's device")(error.into())),
        }
    }

    /// Writes a frame to a host; returns false if its device did not take it.
    pub(super) fn write(&self, host: usize, frame: &[u8]) -> bool {
        rustix::io::write(&self.devices[host], frame).is_ok_and(|written| written == frame.len())
    }
}
