//! The lab runs a scenario of the packet simulator on real kernels: a reconfigurable datacenter on one machine (Etalon,
//! section 3), without a patched kernel.
//!
//! ```text
//!  namespace of a host                         this process
//!  sockets -> TCP -> tbf (the NIC) -> TUN ---> Switch of `circuits`, in real time / dilation ---> TUN of the receiver
//!                                                ^
//!                    demand of queues or of applications -> scheduler -> the next week
//! ```
//!
//! Each host is a network namespace with one TUN device. Its frames carry partial checksums, and each frame is one
//! packet of at most the MTU, so that queues count packets as a switch does. [`SwitchLoop`] reads the frames, passes
//! them to [`leeward_circuits::switch::Switch`], and writes them to their receivers when the switch says so.
//!
//! Time is virtual: the real time since the start, divided by the dilation. A link of 80 Gb/s is one of 2 Gb/s under a
//! dilation of 40. The lab records how late each packet was, and refuses a run whose timing drifted ([`Timing`]).
//!
//! [`Hosts`] makes namespaces and removes them; everything has the name of the lab, and a file of its state lists every
//! [`Part`], so that another process can remove what a killed lab left ([`State`]). [`run`] runs a scenario with its own
//! traffic. The records are those of the simulator, so the same summary, tables and pictures serve both.
//!
//! [`Network`] is the network of a cluster file, without circuits and in real time: racks, pods and the core forward packets,
//! and `tc` limits their links. It is the project's only maker of namespaces with cables, for tests too.

mod bpf;
mod cgroup;
mod clock;
mod drops;
mod error;
mod frame;
mod frames;
mod groups;
mod hosts;
mod inside;
mod kernel;
mod kernel_parts;
mod live;
mod machine;
mod names;
mod network;
mod part;
mod precedence;
mod process;
mod programs;
mod reports;
mod run;
mod standing;
mod state;
mod switch;
mod timing;
mod traffic;
mod tun;

pub use bpf::Counters;
pub use clock::Clock;
pub use error::LabError;
pub use hosts::{Hosts, Nics, Programs};
pub use inside::Inside;
pub use kernel::KernelSettings;
pub use kernel_parts::KernelParts;
pub use live::{Live, StandingLab};
pub use machine::Machine;
pub use names::{Address, LabName};
pub use network::{Network, NetworkOptions};
pub use part::Part;
pub use process::Process;
pub use run::{Options, Run, run};
pub use standing::{Standing, stand, view_of};
pub use state::{Failure, State};
pub use switch::{Shared, SwitchLoop};
pub use timing::Timing;
