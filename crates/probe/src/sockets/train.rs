//! Train sockets: send and receive packets in batches, with the kernel's arrival timestamps.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, MultiHeaders, recvmmsg, sendmmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;

use super::clock::Clock;
use crate::collect::{Collector, TrainReport};
use crate::estimate::SendStatistics;
use crate::train::Train;
use crate::wire::{HEADER, Head};

/// Number of packets per system call.
const BATCH: usize = 128;
/// Size of a sender's socket buffer. The buffer does not run empty while other processes run. It holds fewer than 1,000
/// packets, because interfaces drop packets beyond this number.
const SEND_BUFFER: usize = 1 << 20;
/// Maximum kernel memory per packet in addition to its bytes.
const OVERHEAD: usize = 2_304;
/// Maximum time for which a sender waits for its own interface.
const STUCK_NS: u64 = 10_000_000_000;
/// Time without packets after which reception ends, once the sender has finished.
const QUIET_NS: u64 = 500_000_000;

/// Sends a train from a socket that is connected to its receiver.
///
/// # Errors
///
/// Returns the system's error, or [`io::ErrorKind::TimedOut`] if the interface accepts nothing for ten seconds.
pub fn send(socket: &UdpSocket, session: u64, train: &Train) -> io::Result<SendStatistics> {
    // The larger buffer is best effort. A smaller buffer causes more waits, which `waited_ns` counts.
    let forced = setsockopt(socket, sockopt::SndBufForce, &SEND_BUFFER);
    forced.or_else(|_| setsockopt(socket, sockopt::SndBuf, &SEND_BUFFER))?;
    let padding = vec![0; train.bytes as usize - HEADER];
    let mut heads = vec![[0; HEADER]; train.packets as usize];
    let mut batch = MultiHeaders::<()>::preallocate(BATCH, None);
    let clock = Clock::start();
    let mut sent = SendStatistics::default();
    for burst in 0..train.bursts {
        for (number, head) in (0..).zip(&mut heads) {
            Head { session, burst, number }.write(head);
        }
        let slices: Vec<_> = heads.iter().map(|head| [IoSlice::new(head), IoSlice::new(&padding)]).collect();
        let (start_ns, mut waited, mut next) = (clock.ns(), 0, 0);
        while next < slices.len() {
            let chunk = &slices[next..slices.len().min(next + BATCH)];
            let to = [None; BATCH];
            let flags = MsgFlags::MSG_DONTWAIT;
            match sendmmsg(socket.as_raw_fd(), &mut batch, chunk, to, [], flags) {
                Ok(taken) => next += taken.count(),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN | Errno::ENOBUFS) => waited += wait_until_writable(socket, &clock)?,
                Err(error) => return Err(error.into()),
            }
        }
        sent.packets += next as u64;
        sent.busy_ns += (clock.ns() - start_ns).saturating_sub(waited);
        sent.waited_ns += waited;
        if burst + 1 < train.bursts {
            std::thread::sleep(Duration::from_nanos(train.gap_ns));
        }
    }
    Ok(sent)
}

/// Waits until the socket accepts more data; returns the waiting time.
fn wait_until_writable(socket: &UdpSocket, clock: &Clock) -> io::Result<u64> {
    let start_ns = clock.ns();
    let mut descriptors = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
    while poll(&mut descriptors, PollTimeout::from(100_u8))? == 0 {
        if clock.ns() - start_ns > STUCK_NS {
            let message = "the interface accepts no packets";
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
    }
    Ok(clock.ns() - start_ns)
}

/// A socket that is ready to receive a train.
pub struct Receiver {
    socket: UdpSocket,
}

impl Receiver {
    /// Binds to an address. If the port is taken, binds to any free port of the same IP address.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn bind(address: SocketAddr, train: &Train) -> io::Result<Receiver> {
        let any = SocketAddr::new(address.ip(), 0);
        let socket = UdpSocket::bind(address).or_else(|_| UdpSocket::bind(any))?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1)?;
        // The buffer holds two bursts, which may wait while other processes run. This is best effort; overflows are
        // counted.
        let room = 2 * train.packets as usize * (train.bytes as usize + OVERHEAD);
        let forced = setsockopt(&socket, sockopt::RcvBufForce, &room);
        forced.or_else(|_| setsockopt(&socket, sockopt::RcvBuf, &room))?;
        Ok(Receiver { socket })
    }

    /// Address of the socket.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Receives a train. Returns when the train is complete, after silence once the sender has `ended`, or after
    /// `limit_ns`.
    ///
    /// # Errors
    ///
    /// Returns the system's error.
    pub fn receive(
        &self,
        session: u64,
        train: Train,
        ended: &AtomicBool,
        limit_ns: u64,
    ) -> io::Result<TrainReport> {
        let mut collector = Collector::new(session, train);
        let clock = Clock::start();
        let (mut overrun, mut last) = (0, 0);
        while !collector.complete() && clock.ns() < limit_ns {
            let mut descriptors = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
            match poll(&mut descriptors, PollTimeout::from(20_u8)) {
                Ok(0) if ended.load(Ordering::Acquire) && clock.ns() - last > QUIET_NS => break,
                Ok(0) => {
                    // Silence counts from the end of sending.
                    if !ended.load(Ordering::Acquire) {
                        last = clock.ns();
                    }
                    continue;
                }
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            }
            self.take(&mut collector, &mut overrun)?;
            last = clock.ns();
        }
        // Each packet carries the kernel's count of packets dropped before it. An empty packet from this socket fetches
        // the final count.
        if self.socket.send_to(&[], self.socket.local_addr()?).is_ok() {
            self.take(&mut collector, &mut overrun)?;
        }
        Ok(collector.finish(u64::from(overrun)))
    }

    /// Reads all packets that have arrived.
    fn take(&self, collector: &mut Collector, overrun: &mut u32) -> io::Result<()> {
        loop {
            let mut heads = [[0; HEADER]; BATCH];
            let mut slices = heads.each_mut().map(|head| [IoSliceMut::new(head)]);
            // Each call allocates a control buffer, because the kernel shortens the length of the buffer to the filled
            // part.
            let room = nix::cmsg_space!(TimeSpec, u32);
            let mut batch = MultiHeaders::<()>::preallocate(BATCH, Some(room));
            // With this flag the kernel reports a packet's full length, although only its head is read.
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC;
            let taken = match recvmmsg(self.socket.as_raw_fd(), &mut batch, slices.iter_mut(), flags, None) {
                Ok(taken) => taken,
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => continue,
                // ICMP errors on this socket may come from any host, so they are ignored.
                Err(Errno::ECONNREFUSED) => continue,
                Err(error) => return Err(error.into()),
            };
            for packet in taken {
                let mut at_ns = None;
                for message in packet.cmsgs()? {
                    match message {
                        ControlMessageOwned::ScmTimestampns(at) => {
                            at_ns = u64::try_from(Duration::from(at).as_nanos()).ok();
                        }
                        ControlMessageOwned::RxqOvfl(dropped) => *overrun = dropped,
                        _ => {}
                    }
                }
                let head = packet.iovs().next().and_then(Head::read);
                if let Some(at_ns) = at_ns.filter(|_| packet.bytes > 0) {
                    collector.packet(head, packet.bytes, at_ns);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::estimate::estimate;

    #[test]
    fn every_packet_of_a_train_over_the_loopback_is_counted() {
        let train = Train { bursts: 3, packets: 100, ..Train::default() };
        let receiver = Receiver::bind("127.0.0.1:0".parse().unwrap(), &train).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(receiver.address().unwrap()).unwrap();
        let ended = AtomicBool::new(false);
        let (sent, received) = thread::scope(|scope| {
            let receiving = scope.spawn(|| receiver.receive(7, train, &ended, 5_000_000_000));
            let sent = send(&socket, 7, &train);
            ended.store(true, Ordering::Release);
            (sent.unwrap(), receiving.join().unwrap().unwrap())
        });
        assert_eq!((sent.packets, received.packets() + received.overrun), (300, 300), "{received:?}");
        assert_eq!(received.strangers, 0);
        let estimate = estimate(&train, &sent, &received, Some(100_000)).unwrap();
        assert!(estimate.rate_bps > 1e7, "{estimate:?}");
        assert_eq!(estimate.loss, 0.0);
    }

    #[test]
    fn a_receiver_without_packets_of_its_train_ends_after_silence() {
        let train = Train { bursts: 2, packets: 10, ..Train::default() };
        let receiver = Receiver::bind("127.0.0.1:0".parse().unwrap(), &train).unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(receiver.address().unwrap()).unwrap();
        socket.send(b"no packet of a train").unwrap();
        let received = receiver.receive(7, train, &AtomicBool::new(true), 5_000_000_000).unwrap();
        assert_eq!((received.packets(), received.strangers), (0, 1));
    }
}
