//! Connections of flows: their opening, and their sockets that are ready.

use std::io;

use leeward_fabric::Nanos;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::{CONNECT_TIME, KINDS, LONGEST_WAIT, RECEIVER, SENDER, Traffic, failed, sockets};
use crate::error::LabError;

impl Traffic<'_> {
    /// Connects the flows that do not belong to blocks, and waits until their receivers have accepted.
    pub(super) fn connect_all(&mut self) -> Result<(), LabError> {
        let blocks = self.driver.workload().blocks();
        let first_of_blocks = blocks.first().map_or(u32::MAX, |block| block.first);
        let mut waiting = 0;
        for flow in 0..self.flows.len() as u32 {
            if flow < first_of_blocks {
                self.connect(flow)?;
                waiting += 1;
            }
        }
        let until = self.clock.now().plus(Nanos(CONNECT_TIME / u64::from(self.clock.dilation())));
        loop {
            let connected = self.flows.iter().filter(|flow| flow.receiver.is_some()).count();
            if connected == waiting {
                return Ok(());
            }
            if self.shared.is_stopped() {
                return Err(LabError::Stopped);
            }
            if self.clock.now() > until {
                let error = std::io::Error::other(format!("{connected} of {waiting} flows connected"));
                return Err(LabError::system("connect")(error));
            }
            self.poll(LONGEST_WAIT)?;
        }
    }

    pub(super) fn connect(&mut self, flow: u32) -> Result<(), LabError> {
        let ends = self.driver.workload().flows()[flow as usize];
        let (stream, tuple) = self.sockets.connect(flow, ends.source, ends.destination)?;
        let data = EventData::new_u64(u64::from(flow) * KINDS + SENDER);
        // The sender is waited for only while it has a backlog.
        epoll::add(&self.poll, &stream, data, EventFlags::empty()).map_err(failed)?;
        let connection = &mut self.flows[flow as usize];
        (connection.sender, connection.tuple) = (Some(stream), Some(tuple));
        Ok(())
    }

    /// Waits for at most `nanos` of real time, and handles the sockets that are ready.
    pub(super) fn poll(&mut self, nanos: u64) -> Result<(), LabError> {
        let timeout =
            Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 };
        let mut ready = Vec::with_capacity(64);
        match epoll::wait(&self.poll, rustix::buffer::spare_capacity(&mut ready), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(failed(error)),
        }
        for event in ready {
            let data = event.data.u64();
            let number = (data / KINDS) as usize;
            match data % KINDS {
                SENDER => {
                    let flags = event.flags;
                    if flags.intersects(EventFlags::ERR | EventFlags::HUP) {
                        self.check_sender(number)?;
                    }
                    self.send(number)?;
                }
                RECEIVER => self.receive(number)?,
                _ => self.accept(number)?,
            }
        }
        Ok(())
    }

    fn accept(&mut self, host: usize) -> Result<(), LabError> {
        while let Some((flow, stream)) = self.sockets.accept(host)? {
            if self.flows[flow as usize].is_over {
                continue;
            }
            let data = EventData::new_u64(u64::from(flow) * KINDS + RECEIVER);
            epoll::add(&self.poll, &stream, data, EventFlags::IN).map_err(failed)?;
            self.flows[flow as usize].receiver = Some(stream);
        }
        Ok(())
    }

    /// Returns an error if the connection of a flow has ended. The kernel reports such a sender until it is closed.
    fn check_sender(&self, flow: usize) -> Result<(), LabError> {
        let Some(stream) = &self.flows[flow].sender else { return Ok(()) };
        Err(self.broken(flow, sockets::end_of(stream)))
    }

    /// Error of a connection that ended before its flow.
    pub(super) fn broken(&self, flow: usize, error: io::Error) -> LabError {
        let ends = self.records.flows[flow].flow;
        let (source_host, destination) = (ends.source.to_string(), ends.destination.to_string());
        LabError::Connection { flow: flow as u32, source_host, destination, error }
    }
}
