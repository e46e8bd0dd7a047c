//! The proxy over loopback, in front of a server in memory with the protocol's real bytes; its program; and real
//! servers and clients where they are installed.

mod support;

mod faults;
mod forwarding;
mod ganesha;
mod hostile;
mod order;
mod program;
mod replay;
mod workload_files;
