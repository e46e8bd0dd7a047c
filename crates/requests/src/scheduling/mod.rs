//! Service orders of servers, and the feedback that adjusts weights.

mod cake;

use leeward_shaping::Order;

pub use cake::Cake;
pub(super) use cake::WeightController;

/// Order in which a server serves waiting requests. In every order, requests over their limits come last.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Scheduling {
    /// Strict priorities, first come first served within a priority. PriorityMeister enforces this order; bySLO
    /// enforces it with other priorities.
    #[default]
    Priority,
    /// First come, first served at the server.
    Fifo,
    /// Proportional share (SLO section 3.3.1): device time in proportion to weights. Devices only.
    Shares,
    /// Proportional share with weights that feedback adjusts. Devices only.
    Cake(Cake),
    /// Earliest deadline first: the deadline is arrival plus SLO. Best effort comes last. Devices only.
    Deadline,
}

impl Scheduling {
    /// Order of the requests of a server.
    pub(super) fn order(self) -> Order {
        match self {
            Scheduling::Priority => Order::Priority,
            Scheduling::Fifo => Order::Fifo,
            Scheduling::Shares | Scheduling::Cake(_) => Order::Shares,
            Scheduling::Deadline => Order::Deadline,
        }
    }
}
