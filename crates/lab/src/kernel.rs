//! Settings of hosts' kernels: the transport of a scenario, with its times multiplied by the dilation.

use leeward_fabric::Nanos;
use leeward_packets::Settings;
use leeward_tcp::RackUse;
use leeward_tcp::control::Control;
use rustix::time::{ClockId, clock_getres};

use crate::error::LabError;
use crate::kernel_parts::KernelParts;
use crate::names::congestion_control;

/// Bytes of headers of a segment: IPv4 20, TCP 20, timestamps 12.
const HEADERS: u32 = 52;
/// Largest frame.
const MOST_MTU: u32 = 65_535;
/// Buffers of sockets, in bytes: smallest, first, largest. Several times the bytes in flight on any circuit, so that the
/// congestion window is the only limit.
const BUFFERS: &str = "4096 4194304 33554432";
/// Send buffers grow with the window. Hundreds of flows that fill their first buffer must not use up the kernel's memory
/// for TCP, because it then closes the windows of all receivers.
const SEND_BUFFERS: &str = "4096 1048576 33554432";
/// Range of the kernel's setting of the largest timeout.
const MOST_TIMEOUT_MS: std::ops::RangeInclusive<u64> = 1_000..=120_000;
/// Longest delay of an acknowledgement that BPF programs may set, in microseconds.
const MOST_ACK_DELAY_US: u64 = 200_000;
/// The shortest one, in ticks of the kernel.
const LEAST_ACK_DELAY_TICKS: u64 = 2;

/// Settings of all hosts' kernels.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelSettings {
    /// Largest packet, in bytes.
    pub mtu: u32,
    /// Name of the congestion control.
    pub control: String,
    /// Settings under `/proc/sys/net`, with their values. Those that a kernel does not have are left alone.
    pub(crate) sysctls: Vec<(&'static str, String)>,
    /// Settings of the route to other hosts.
    pub(crate) route: String,
    /// BPF programs, as arguments of the loader; empty if the kernel's own TCP suffices.
    pub(crate) bpf: Vec<String>,
    /// Settings of the scenario that the kernels do not follow, one sentence each.
    pub(crate) notes: Vec<String>,
}

impl KernelSettings {
    /// Returns the settings of a lab for a scenario under a dilation.
    ///
    /// # Errors
    /// Returns an error for a transport that this kernel does not have.
    pub fn of(settings: &Settings, dilation: u32, parts: &KernelParts) -> Result<KernelSettings, LabError> {
        let tcp = &settings.tcp;
        let unsupported = |field, problem: String| Err(LabError::Unsupported { field, problem });
        let mtu = tcp.mss.saturating_add(HEADERS);
        if mtu > MOST_MTU {
            return unsupported("tcp.mss", format!("{}: must be at most {}", tcp.mss, MOST_MTU - HEADERS));
        }
        let mut bpf = Vec::new();
        let control = match (tcp.control, tcp.divisions) {
            (Control::Reno, 1) => "reno".to_owned(),
            (Control::Cubic, 1) => "cubic".to_owned(),
            (Control::Dctcp, 1) => "dctcp".to_owned(),
            (Control::Retcp { alpha, beta }, 1) => {
                let control = congestion_control("re");
                bpf.extend(["--retcp".to_owned(), format!("{control},alpha={alpha},beta={beta}")]);
                control
            }
            (Control::Reno, 2) => {
                let control = congestion_control("td");
                bpf.extend(["--tdtcp".to_owned(), control.clone()]);
                control
            }
            (_, divisions) => {
                let problem = format!("{divisions}: the lab's kernels have 1, and 2 with `reno`");
                return unsupported("tcp.divisions", problem);
            }
        };
        let loader = parts.loader();
        if let (Err(reason), false) = (&loader, bpf.is_empty()) {
            let field = if tcp.divisions == 1 { "tcp.control" } else { "tcp.divisions" };
            return unsupported(field, format!("{reason}; `reno`, `cubic` and `dctcp` work without"));
        }
        let real = |time: Nanos| time.0.saturating_mul(u64::from(dilation));
        let recovery = match tcp.rack {
            RackUse::Always => 1,
            RackUse::Never | RackUse::Repairs => 0,
        };
        let flag = |on: bool| if on { "1" } else { "0" }.to_owned();
        let timeout = real(tcp.max_timeout) / 1_000_000;
        let mut sysctls = vec![
            ("ipv6/conf/all/disable_ipv6", "1".to_owned()),
            ("ipv4/icmp_ratelimit", "0".to_owned()),
            ("ipv4/tcp_no_metrics_save", "1".to_owned()),
            ("ipv4/tcp_rmem", buffers(tcp.receive_window)),
            ("ipv4/tcp_wmem", SEND_BUFFERS.to_owned()),
            ("ipv4/tcp_slow_start_after_idle", flag(tcp.restart_after_idle)),
            ("ipv4/tcp_recovery", recovery.to_string()),
            ("ipv4/tcp_early_retrans", if tcp.tail_probe { "3" } else { "0" }.to_owned()),
            ("ipv4/tcp_ecn", flag(tcp.ecn || tcp.control == Control::Dctcp)),
            ("ipv4/tcp_rto_min_us", (real(tcp.min_timeout) / 1000).to_string()),
            (
                "ipv4/tcp_rto_max_ms",
                timeout.clamp(*MOST_TIMEOUT_MS.start(), *MOST_TIMEOUT_MS.end()).to_string(),
            ),
        ];
        if let Some(limit) = settings.nic_limit {
            sysctls.push(("ipv4/tcp_limit_output_bytes", limit.min(i32::MAX as u64).to_string()));
        }
        let mut notes = Vec::new();
        let ack_delay = real(tcp.ack_delay) / 1000;
        match loader {
            Ok(_) => {
                let near = ack_delay.clamp(least_ack_delay_us(), MOST_ACK_DELAY_US);
                bpf.extend(["--timers".to_owned(), format!("delack_max_us={near}")]);
                if near != ack_delay {
                    notes.push(format!(
                        "tcp.ack_delay: {} of virtual time, the kernel's limit under this dilation",
                        Nanos(1000 * near / u64::from(dilation))
                    ));
                }
            }
            Err(reason) => notes.push(format!("tcp.ack_delay: the kernel's own delays apply: {reason}")),
        }
        let rto_min = (real(tcp.min_timeout) / 1_000_000).max(1);
        let route = format!("initcwnd {} rto_min {rto_min}ms", tcp.initial_window);
        Ok(KernelSettings { mtu, control, sysctls, route, bpf, notes })
    }
}

/// Shortest delay of an acknowledgement that BPF programs may set, in microseconds. The kernel's coarse clock advances
/// with its ticks.
fn least_ack_delay_us() -> u64 {
    LEAST_ACK_DELAY_TICKS * clock_getres(ClockId::MonotonicCoarse).tv_nsec as u64 / 1000
}

/// Receive buffers for a window; the kernel reserves half of a buffer for its own bookkeeping.
fn buffers(window: u64) -> String {
    match window.checked_mul(2).and_then(|bytes| i32::try_from(bytes).ok()) {
        Some(bytes) => format!("4096 {bytes} {bytes}"),
        None => BUFFERS.to_owned(),
    }
}
