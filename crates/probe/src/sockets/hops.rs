//! Hop count of a path: sends datagrams with a time to live of 1, 2, ... hops, like traceroute over UDP.
//!
//! The ICMP replies come from the error queue of the sending socket (`IP_RECVERR`), which needs no privileges.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};

use super::clock::Clock;

/// Maximum number of hops. The longest paths in a multi-rooted tree of a datacenter have 8 (section 3.3.1).
pub const MOST: u8 = 30;
/// Number of datagrams per time to live; one reply suffices.
const TRIES: u8 = 3;
/// Timeout for a reply.
const TIMEOUT_NS: u64 = 500_000_000;
/// Number of consecutive times to live without a reply after which the search ends.
const SILENT: u8 = 5;
/// First port of traceroute; usually nothing listens there.
const PORT: u16 = 33_434;

/// Reply to a datagram.
enum Answer {
    /// A router dropped the datagram, because its time to live ran out.
    Expired,
    /// The datagram arrived.
    Arrived,
}

/// Number of hops to a host that confirms arrival; `None` without confirmation.
///
/// # Errors
///
/// Returns the system's error, for example if there is no route to the host.
pub fn count(address: SocketAddr) -> io::Result<Option<u8>> {
    let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let mut silent = 0;
    for hops in 1..=MOST {
        let mut replied = false;
        for attempt in 0..TRIES {
            // Each datagram has its own socket, so that a late reply to an earlier one is not taken for its reply.
            let socket = UdpSocket::bind(any)?;
            if address.is_ipv4() {
                setsockopt(&socket, sockopt::Ipv4RecvErr, &true)?;
                setsockopt(&socket, sockopt::Ipv4Ttl, &i32::from(hops))?;
            } else {
                setsockopt(&socket, sockopt::Ipv6RecvErr, &true)?;
                setsockopt(&socket, sockopt::Ipv6Ttl, &i32::from(hops))?;
            }
            let port = PORT + u16::from(hops) * u16::from(TRIES) + u16::from(attempt);
            socket.send_to(&[0; 32], SocketAddr::new(address.ip(), port))?;
            match answer(&socket)? {
                Some(Answer::Arrived) => return Ok(Some(hops)),
                Some(Answer::Expired) => replied = true,
                None => {}
            }
            if replied {
                break;
            }
        }
        silent = if replied { 0 } else { silent + 1 };
        if silent == SILENT {
            break;
        }
    }
    Ok(None)
}

/// Waits for the reply to the socket's only datagram; `None` on timeout.
fn answer(socket: &UdpSocket) -> io::Result<Option<Answer>> {
    const TIME_EXCEEDED_4: (u8, u8) = (2, 11);
    const TIME_EXCEEDED_6: (u8, u8) = (3, 3);
    const PORT_UNREACHABLE_4: (u8, u8, u8) = (2, 3, 3);
    const PORT_UNREACHABLE_6: (u8, u8, u8) = (3, 1, 4);
    let clock = Clock::start();
    while clock.ns() < TIMEOUT_NS {
        // Errors are always reported, so no event needs to be requested.
        let mut descriptors = [PollFd::new(socket.as_fd(), PollFlags::empty())];
        match poll(&mut descriptors, PollTimeout::from(50_u8)) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let mut bytes = [0; 64];
        let mut slices = [IoSliceMut::new(&mut bytes)];
        // Room for an error of either address family, and for the address of its sender.
        let mut room = vec![0; 256];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message =
            match recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slices, Some(&mut room), flags) {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            };
        for control in message.cmsgs()? {
            let error = match control {
                ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => {
                    error
                }
                _ => continue,
            };
            let kind = (error.ee_origin, error.ee_type);
            let code = (error.ee_origin, error.ee_type, error.ee_code);
            if [TIME_EXCEEDED_4, TIME_EXCEEDED_6].contains(&kind) {
                return Ok(Some(Answer::Expired));
            }
            if [PORT_UNREACHABLE_4, PORT_UNREACHABLE_6].contains(&code) {
                return Ok(Some(Answer::Arrived));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_one_hop_away() {
        assert_eq!(count("127.0.0.1:1".parse().unwrap()).unwrap(), Some(1));
    }
}
