//! What hosts say to each other.

use serde::{Deserialize, Serialize};

use crate::collect::Received;
use crate::error::ProbeError;
use crate::estimate::Estimate;
use crate::train::{Train, Transfer};
use crate::transferred::Transferred;

/// Of the protocol; hosts of different versions do not measure together.
pub const VERSION: u32 = 1;

/// What is asked of a host that listens. The first on a connection is `hello`, or `data` on one that carries a transfer.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// Who speaks, and that they may.
    Hello {
        /// Of the protocol.
        version: u32,
        /// What all hosts of a network share, if they share one.
        secret: Option<String>,
    },
    /// Nothing: how long it takes to be answered.
    Ping {},
    /// To take a train in.
    ReceiveTrain {
        /// The train.
        train: Train,
    },
    /// That the last packet of the train is sent.
    Ended {},
    /// To take a transfer in.
    ReceiveTransfer {
        /// The transfer.
        transfer: Transfer,
    },
    /// That from now on this connection carries bytes of a transfer.
    Data {
        /// Of the transfer.
        session: u64,
    },
    /// To measure, as the source.
    Measure {
        /// The destination as the source knows it: `HOST` or `HOST:PORT`.
        to: String,
        /// What to measure.
        order: Order,
    },
}

/// What a source measures.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum Order {
    /// The rate of the path by a packet train.
    Train {
        /// The train.
        train: Train,
    },
    /// Throughput of a bulk transfer.
    Transfer {
        /// The transfer.
        transfer: Transfer,
    },
    /// How many hops away the destination is.
    Hops {},
}

/// What a host that listens says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// Who answers.
    Hello {
        /// Of the protocol.
        version: u32,
    },
    /// To a ping.
    Pong {},
    /// What was asked may be sent.
    Ready {
        /// To this port of this host.
        port: u16,
        /// With this in it.
        session: u64,
    },
    /// What arrived of a train.
    Received {
        /// Burst by burst.
        received: Received,
    },
    /// What arrived of a transfer.
    Transferred {
        /// Slot by slot.
        transferred: Transferred,
    },
    /// What an order came to.
    Measured {
        /// What was measured.
        outcome: Outcome,
    },
    /// It measures something already.
    Busy {},
    /// It will not, or cannot.
    Refused {
        /// Why.
        message: String,
    },
}

/// What was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case", deny_unknown_fields)]
pub enum Outcome {
    /// The rate of the path.
    Train {
        /// By a packet train.
        estimate: Estimate,
    },
    /// Throughput.
    Transfer {
        /// Of a bulk transfer.
        transferred: Transferred,
    },
    /// How far the destination is.
    Hops {
        /// Hops; none if nothing said that the datagrams arrived.
        hops: Option<u8>,
    },
}

impl Outcome {
    /// Refuses what cannot come of this order; a peer may say anything.
    ///
    /// # Errors
    ///
    /// [`ProbeError::Nothing`] with what is wrong.
    pub fn check(&self, order: &Order) -> Result<(), ProbeError> {
        match (order, self) {
            (Order::Train { train }, Outcome::Train { estimate }) => estimate.check(train),
            (Order::Transfer { transfer }, Outcome::Transfer { transferred }) => transferred.check(transfer),
            (Order::Hops {}, Outcome::Hops { .. }) => Ok(()),
            _ => Err(ProbeError::Nothing("an answer to another order".to_owned())),
        }
    }
}
