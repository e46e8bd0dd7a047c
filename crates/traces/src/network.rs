//! Network work of a request.

use crate::error::WorkError;
use crate::{Kind, Request};

/// Bytes of a request in each direction (SLO section 2.3.2). The payload travels in with a write and out with a read,
/// and a small message travels in the other direction.
///
/// The bytes of each direction are `overhead` plus a factor times the size. The thesis gives no numbers, so the
/// defaults come from the released code.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NetworkWork {
    overhead: f64,
    payload: f64,
    other: f64,
}

impl Default for NetworkWork {
    fn default() -> NetworkWork {
        NetworkWork {
            overhead: NetworkWork::OVERHEAD,
            payload: NetworkWork::PAYLOAD,
            other: NetworkWork::OTHER,
        }
    }
}

impl NetworkWork {
    /// Bytes per request in each direction, as released.
    pub const OVERHEAD: f64 = 200.0;
    /// Bytes per byte of size, in the direction of the payload, as released.
    pub const PAYLOAD: f64 = 1.1;
    /// Bytes per byte of size, in the other direction, as released.
    pub const OTHER: f64 = 0.025;

    /// Takes `overhead` bytes per request in each direction, and a number of bytes per byte of size for the payload's
    /// direction and for the other direction.
    ///
    /// # Errors
    /// Fails for a number that is negative, above 1e9 or NaN.
    pub fn new(overhead: f64, payload: f64, other: f64) -> Result<NetworkWork, WorkError> {
        for (name, number) in [("overhead", overhead), ("payload", payload), ("other", other)] {
            if !(0.0..=1e9).contains(&number) {
                return Err(WorkError::Setting { name, number });
            }
        }
        Ok(NetworkWork { overhead, payload, other })
    }

    /// The same, with the released numbers as defaults.
    ///
    /// # Errors
    /// Fails as [`NetworkWork::new`] does.
    pub fn with_defaults(
        overhead: Option<f64>,
        payload: Option<f64>,
        other: Option<f64>,
    ) -> Result<NetworkWork, WorkError> {
        NetworkWork::new(
            overhead.unwrap_or(NetworkWork::OVERHEAD),
            payload.unwrap_or(NetworkWork::PAYLOAD),
            other.unwrap_or(NetworkWork::OTHER),
        )
    }

    /// Bytes from the client to the server.
    pub fn bytes_in(&self, request: &Request) -> f64 {
        self.bytes(request, Kind::Write)
    }

    /// Bytes from the server to the client.
    pub fn bytes_out(&self, request: &Request) -> f64 {
        self.bytes(request, Kind::Read)
    }

    /// Bytes in the direction in which requests of kind `carrier` have their payload.
    fn bytes(&self, request: &Request, carrier: Kind) -> f64 {
        let factor = if request.kind == carrier { self.payload } else { self.other };
        self.overhead + factor * request.size as f64
    }
}
