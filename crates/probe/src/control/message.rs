//! Messages between hosts.

use serde::{Deserialize, Serialize};

use crate::collect::TrainReport;
use crate::error::ProbeError;
use crate::estimate::Estimate;
use crate::train::{Train, Transfer};
use crate::transfer_report::TransferReport;

/// Protocol version. Hosts of different versions do not measure each other.
pub const VERSION: u32 = 1;

/// Request to a listening host. The first request on a connection is `hello`, or `data` on a data connection of a
/// transfer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Greeting with the peer's credentials.
    Hello {
        /// Protocol version.
        version: u32,
        /// Shared secret of the network's hosts, if any.
        secret: Option<String>,
    },
    /// Requests an immediate reply, to measure the round-trip time.
    Ping {},
    /// Asks the host to receive a train.
    ReceiveTrain {
        /// Train.
        train: Train,
    },
    /// Reports that the last packet of the train was sent.
    Ended {},
    /// Asks the host to receive a transfer.
    ReceiveTransfer {
        /// Transfer.
        transfer: Transfer,
    },
    /// Turns this connection into a data connection of a transfer.
    Data {
        /// Session of the transfer.
        session: u64,
    },
    /// Requests a measurement with this host as the source.
    Measure {
        /// Destination, in the form that the source knows: `HOST` or `HOST:PORT`.
        to: String,
        /// Measurement to make.
        order: Order,
    },
}

/// Measurement that a source makes.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// Rate of the path, by a packet train.
    Train {
        /// Train.
        train: Train,
    },
    /// Throughput of a bulk transfer.
    Transfer {
        /// Transfer.
        transfer: Transfer,
    },
    /// Number of hops to the destination.
    Hops {},
}

/// Reply of a listening host.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum Reply {
    /// Reply to a greeting.
    Hello {
        /// Protocol version.
        version: u32,
    },
    /// Reply to a ping.
    Pong {},
    /// Permission to send the requested data.
    Ready {
        /// Port of this host for the packets.
        port: u16,
        /// Session number to put into each packet.
        session: u64,
    },
    /// Report of a received train.
    Received {
        /// Report by burst.
        received: TrainReport,
    },
    /// Report of a received transfer.
    Transferred {
        /// Report by slot.
        transferred: TransferReport,
    },
    /// Result of a measurement.
    Measured {
        /// Result.
        outcome: Outcome,
    },
    /// The host is busy with another measurement.
    Busy {},
    /// The host refuses the request or cannot serve it.
    Refused {
        /// Reason.
        message: String,
    },
}

/// Result of a measurement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// Rate of the path.
    Train {
        /// Estimate from a packet train.
        estimate: Estimate,
    },
    /// Throughput.
    Transfer {
        /// Report of a bulk transfer.
        transferred: TransferReport,
    },
    /// Distance to the destination.
    Hops {
        /// Number of hops; `None` if no reply confirmed that the datagrams arrived.
        hops: Option<u8>,
    },
}

impl Outcome {
    /// Rejects a result that cannot come from this order, because a peer may send anything.
    ///
    /// # Errors
    ///
    /// Returns [`ProbeError::Nothing`] with the violation.
    pub fn check(&self, order: &Order) -> Result<(), ProbeError> {
        match (order, self) {
            (Order::Train { train }, Outcome::Train { estimate }) => estimate.check(train),
            (Order::Transfer { transfer }, Outcome::Transfer { transferred }) => transferred.check(transfer),
            (Order::Hops {}, Outcome::Hops { .. }) => Ok(()),
            _ => Err(ProbeError::Nothing("reply to another request".to_owned())),
        }
    }
}
