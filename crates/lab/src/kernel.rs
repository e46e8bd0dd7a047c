//! Settings of hosts' kernels: the transport of a scenario, with its times multiplied by the dilation.

use std::ffi::CStr;
use std::fs;
use std::path::Path;

use leeward_fabric::Nanos;
use leeward_packets::Settings;
use leeward_tcp::RackUse;
use leeward_tcp::control::Control;
use rustix::system::uname;
use rustix::time::{ClockId, clock_getres};

use crate::error::LabError;
use crate::kernel_parts::KernelParts;
use crate::names::congestion_control;

/// Bytes of headers of a segment: IPv4 20, TCP 20, timestamps 12.
const HEADERS: u32 = 52;
/// Largest frame.
const MOST_MTU: u32 = 65_535;
/// Smallest segment that the kernel sends.
const LEAST_MSS: u32 = 88;
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

/// Folder of the settings, and that of the largest timeout, which kernels before 6.15 do not have.
pub(crate) const SYSCTLS: &str = "/proc/sys/net";
const MOST_TIMEOUT: &str = "ipv4/tcp_rto_max_ms";
/// First release of Linux without another rule for losses than time (RACK): commit 1c120191dcec removed it. Runs with
/// `tcp_recovery` 0 and 1 were the same on Linux 6.18.
const RACK_ONLY: (u32, u32) = (6, 17);
const RACK_NOTE: &str =
    "tcp.rack: always: this kernel detects losses by time, whatever net.ipv4.tcp_recovery is";
/// The number of `growth_acks` depends on the receive buffer; 200 is that of long flows with the buffers of the lab.
const LINUX_NOTE: &str =
    "tcp.undo, tcp.quick_acks, tcp.growth_acks: the kernel does as the simulator with true, 16 and about 200";
const ACK_DELAY: &str = "tcp.ack_delay";
/// CUBIC's constant C, by which its window grows with the cube of time in seconds (RFC 9438, section 5).
const CUBIC_C: f64 = 0.4;

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
        if !(LEAST_MSS..=MOST_MTU - HEADERS).contains(&tcp.mss) {
            let problem = format!("{}: must be {LEAST_MSS} to {} in the lab", tcp.mss, MOST_MTU - HEADERS);
            return unsupported("tcp.mss", problem);
        }
        let real = |time: Nanos| Nanos(time.0.saturating_mul(u64::from(dilation)));
        let least_timeout = real(tcp.min_timeout);
        let most = Nanos(*MOST_TIMEOUT_MS.end() * 1_000_000);
        if least_timeout > most {
            let problem = format!(
                "{}: a dilation of {dilation} makes this {least_timeout} of real time, and the kernel takes at most {most}; \
                 choose a smaller dilation",
                tcp.min_timeout
            );
            return unsupported("tcp.min_timeout", problem);
        }
        if tcp.ecn && tcp.divisions > 1 {
            let problem = "true: the echo of ECN announces circuits to divisions in the lab; leave it out";
            return unsupported("tcp.ecn", problem.to_owned());
        }
        let mut bpf = Vec::new();
        let control = match (tcp.control, tcp.divisions) {
            (Control::Reno, 1) => "reno".to_owned(),
            (Control::Cubic, 1) => "cubic".to_owned(),
            (Control::Dctcp, 1) => "dctcp".to_owned(),
            (Control::Retcp { alpha, beta }, 1) => {
                let control = congestion_control("re");
                bpf.extend(["--retcp".to_owned(), format!("{control},alpha={alpha:.5},beta={beta:.5}")]);
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
        let recovery = match tcp.rack {
            RackUse::Always => 1,
            RackUse::Never | RackUse::Repairs => 0,
        };
        let flag = |on: bool| if on { "1" } else { "0" }.to_owned();
        let most_timeout = real(tcp.max_timeout).0 / 1_000_000;
        let mut sysctls = vec![
            ("ipv6/conf/all/disable_ipv6", "1".to_owned()),
            ("ipv4/icmp_ratelimit", "0".to_owned()),
            ("ipv4/tcp_no_metrics_save", "1".to_owned()),
            ("ipv4/tcp_rmem", buffers(tcp.receive_window)),
            ("ipv4/tcp_wmem", SEND_BUFFERS.to_owned()),
            ("ipv4/tcp_slow_start_after_idle", flag(tcp.restart_after_idle)),
            ("ipv4/tcp_recovery", recovery.to_string()),
            ("ipv4/tcp_early_retrans", if tcp.tail_probe { "3" } else { "0" }.to_owned()),
            ("ipv4/tcp_ecn", flag(tcp.control.is_capable(tcp.ecn))),
            ("ipv4/tcp_rto_min_us", (least_timeout.0 / 1000).max(1).to_string()),
            (MOST_TIMEOUT, most_timeout.clamp(*MOST_TIMEOUT_MS.start(), *MOST_TIMEOUT_MS.end()).to_string()),
            // As in the simulator, no sender gives up.
            ("ipv4/tcp_retries2", u8::MAX.to_string()),
        ];
        if let Some(limit) = settings.nic_limit {
            sysctls.push(("ipv4/tcp_limit_output_bytes", limit.min(i32::MAX as u64).to_string()));
        }
        let mut notes = Vec::new();
        if least_timeout < tick() {
            notes.push(format!(
                "tcp.min_timeout: {} of virtual time, the kernel's limit under this dilation",
                Nanos(tick().0 / u64::from(dilation))
            ));
        }
        if most_timeout < *MOST_TIMEOUT_MS.start() {
            notes.push(format!(
                "tcp.max_timeout: {} of virtual time, the kernel's limit under this dilation",
                Nanos(MOST_TIMEOUT_MS.start() * 1_000_000 / u64::from(dilation))
            ));
        }
        let ack_delay = real(tcp.ack_delay).0 / 1000;
        match loader {
            Ok(_) => {
                let near = ack_delay.clamp(LEAST_ACK_DELAY_TICKS * tick().0 / 1000, MOST_ACK_DELAY_US);
                bpf.extend(["--timers".to_owned(), format!("delack_max_us={near}")]);
                if near != ack_delay {
                    notes.push(format!(
                        "{ACK_DELAY}: {} of virtual time, the kernel's limit under this dilation",
                        Nanos(1000 * near / u64::from(dilation))
                    ));
                }
            }
            Err(reason) => notes.push(own_delays(&reason)),
        }
        if tcp.control == Control::Cubic && dilation > 1 {
            notes.push(format!(
                "tcp.control: the kernel's CUBIC grows windows by real time, so that its constant C (RFC 9438) is \
                 {CUBIC_C} x {dilation}^3 in virtual time; the simulator has {CUBIC_C}"
            ));
        }
        if !tcp.undo || tcp.quick_acks == 0 || tcp.growth_acks == 0 {
            notes.push(LINUX_NOTE.to_owned());
        }
        if tcp.rack != RackUse::Always && detects_by_time(uname().release()) {
            notes.push(RACK_NOTE.to_owned());
        }
        if !Path::new(SYSCTLS).join(MOST_TIMEOUT).exists() {
            notes.push(format!(
                "tcp.max_timeout: the kernel's own limit applies: it has no net/{MOST_TIMEOUT}"
            ));
        }
        let rto_min = (least_timeout.0 / 1_000_000).max(1);
        let route = format!("initcwnd {} rto_min {rto_min}ms", tcp.initial_window);
        Ok(KernelSettings { mtu, control, sysctls, route, bpf, notes })
    }

    /// Does without BPF programs, which cannot be attached for a reason.
    pub(crate) fn without_programs(&mut self, reason: &str) {
        self.notes.retain(|note| !note.starts_with(ACK_DELAY));
        self.notes.push(own_delays(reason));
        if self.bpf.iter().any(|word| word == "--adu") {
            self.notes.push(format!("static programs report no demand: {reason}"));
        }
    }
}

fn own_delays(reason: &str) -> String {
    format!("{ACK_DELAY}: the kernel's own delays apply: {reason}")
}

/// Returns true for a release of the kernel that detects losses by time, whatever its setting `tcp_recovery` says.
fn detects_by_time(release: &CStr) -> bool {
    let release = release.to_string_lossy();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    (numbers.next(), numbers.next()) >= (Some(RACK_ONLY.0), Some(RACK_ONLY.1))
}

/// Writes settings of the namespace of this thread. The kernel does not offer settings that are newer than it.
pub(crate) fn write_sysctls<'a>(settings: impl Iterator<Item = (&'a str, &'a str)>) -> Result<(), LabError> {
    for (setting, value) in settings {
        let path = Path::new(SYSCTLS).join(setting);
        if path.exists() {
            fs::write(&path, value).map_err(LabError::system(format!("{setting} = {value}")))?;
        }
    }
    Ok(())
}

/// Tick of the kernel's timers, with which its coarse clock advances.
fn tick() -> Nanos {
    Nanos(clock_getres(ClockId::MonotonicCoarse).tv_nsec as u64)
}

/// Receive buffers for a window; the kernel reserves half of a buffer for its own bookkeeping.
fn buffers(window: u64) -> String {
    match window.checked_mul(2).and_then(|bytes| i32::try_from(bytes).ok()) {
        Some(bytes) => format!("4096 {bytes} {bytes}"),
        None => BUFFERS.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Settings of a lab without parts in C, with the times of TCP in nanoseconds.
    fn settings(min: u64, max: u64, dilation: u32) -> Result<KernelSettings, LabError> {
        let mut settings = Settings::etalon(2);
        (settings.tcp.min_timeout, settings.tcp.max_timeout) = (Nanos(min), Nanos(max));
        KernelSettings::of(&settings, dilation, &KernelParts::default())
    }

    #[test]
    fn timeouts_are_those_of_the_scenario_or_there_is_a_note() {
        let value = |kernel: &KernelSettings, setting: &str| {
            kernel.sysctls.iter().find(|(name, _)| *name == setting).map(|(_, value)| value.clone())
        };
        let virtual_tick = Nanos(tick().0 / 10);
        let of_min = format!("tcp.min_timeout: {virtual_tick} of virtual time, the kernel's limit");
        let of_min = of_min.as_str();
        let of_max = "tcp.max_timeout: 100ms of virtual time, the kernel's limit";
        for (min, max, dilation, min_us, max_ms, note) in [
            (10_000_000, 6_000_000_000, 20, "200000", "120000", ""),
            (10_000_000, 6_000_000_000, 240, "2400000", "120000", ""),
            (1_000, 60_000_000_000, 10, "10", "120000", of_min),
            (1, 60_000_000_000, 10, "1", "120000", of_min),
            (1_000_000, 50_000_000, 10, "10000", "1000", of_max),
        ] {
            let kernel = settings(min, max, dilation).expect("valid settings");
            assert_eq!(value(&kernel, "ipv4/tcp_rto_min_us").as_deref(), Some(min_us));
            assert_eq!(value(&kernel, "ipv4/tcp_rto_max_ms").as_deref(), Some(max_ms));
            let of_timeouts = kernel.notes.iter().filter(|note| note.contains("_timeout: "));
            let notes: Vec<&String> = of_timeouts.collect();
            assert!(
                notes.len() == usize::from(!note.is_empty()) && notes.iter().all(|one| one.contains(note))
            );
        }
    }

    #[test]
    fn a_kernel_that_detects_losses_by_time_has_a_note_for_other_transports() {
        for (release, is_by_time) in [
            (c"6.18.44-v1", true),
            (c"7.0", true),
            (c"6.17.9", true),
            (c"6.16.12", false),
            (c"5.19", false),
            (c"", false),
        ] {
            assert_eq!(detects_by_time(release), is_by_time, "{release:?}");
        }
        for rack in [RackUse::Always, RackUse::Never, RackUse::Repairs] {
            let mut settings = Settings::etalon(2);
            settings.tcp.rack = rack;
            let kernel = KernelSettings::of(&settings, 20, &KernelParts::default()).expect("valid settings");
            let has_note = rack != RackUse::Always && detects_by_time(uname().release());
            assert_eq!(kernel.notes.contains(&RACK_NOTE.to_owned()), has_note);
        }
    }

    #[test]
    fn rules_of_linux_that_the_scenario_leaves_out_have_a_note() {
        let mut settings = Settings::etalon(2);
        let has_note = |settings: &Settings| {
            let kernel = KernelSettings::of(settings, 20, &KernelParts::default()).expect("no part");
            kernel.notes.contains(&LINUX_NOTE.to_owned())
        };
        assert!(has_note(&settings));
        (settings.tcp.undo, settings.tcp.quick_acks, settings.tcp.growth_acks) = (true, 16, 200);
        assert!(!has_note(&settings));
        settings.tcp.undo = false;
        assert!(has_note(&settings));
    }

    #[test]
    fn echoes_that_announce_circuits_are_not_those_of_marks() {
        let mut settings = Settings::etalon(2);
        settings.tcp.ecn = true;
        let ecn = |settings: &Settings| {
            let kernel = KernelSettings::of(settings, 20, &KernelParts::default())?;
            let value = kernel.sysctls.iter().find(|(name, _)| *name == "ipv4/tcp_ecn");
            Ok::<_, LabError>(value.map(|(_, value)| value.clone()))
        };
        assert_eq!(ecn(&settings).expect("Reno has marks").as_deref(), Some("1"));
        settings.tcp.divisions = 2;
        let error = ecn(&settings).expect_err("the echo has one meaning").to_string();
        assert!(error.starts_with("tcp.ecn: true: "), "{error}");
    }

    #[test]
    fn without_programs_the_notes_say_what_applies() {
        let mut kernel = settings(10_000_000, 6_000_000_000, 20).expect("valid settings");
        kernel.bpf = ["--timers", "delack_max_us=1", "--adu", "/socket"].map(str::to_owned).into();
        kernel.without_programs("no struct_ops");
        let of_delays: Vec<&String> =
            kernel.notes.iter().filter(|note| note.starts_with(ACK_DELAY)).collect();
        assert_eq!(of_delays, ["tcp.ack_delay: the kernel's own delays apply: no struct_ops"]);
        assert!(kernel.notes.contains(&"static programs report no demand: no struct_ops".to_owned()));
    }

    #[test]
    fn windows_of_cubic_grow_by_real_time_and_there_is_a_note() {
        let mut settings = Settings::etalon(2);
        settings.tcp.control = Control::Cubic;
        for (dilation, notes) in [(1, 0), (80, 1)] {
            let kernel = KernelSettings::of(&settings, dilation, &KernelParts::default()).expect("no part");
            let of_control = kernel.notes.iter().filter(|note| note.starts_with("tcp.control: "));
            assert_eq!(of_control.filter(|note| note.contains("0.4 x 80^3")).count(), notes);
        }
    }

    #[test]
    fn what_the_kernel_does_not_take_is_an_error() {
        let error = settings(1_000_000_000, 6_000_000_000, 240).expect_err("240 s").to_string();
        assert_eq!(
            error,
            "tcp.min_timeout: 1s: a dilation of 240 makes this 4min of real time, and the kernel takes at most 2min; \
             choose a smaller dilation"
        );
        for mss in [1, 87, 65_484, u32::MAX] {
            let mut settings = Settings::etalon(2);
            settings.tcp.mss = mss;
            let error = KernelSettings::of(&settings, 1, &KernelParts::default()).expect_err("invalid");
            assert_eq!(error.to_string(), format!("tcp.mss: {mss}: must be 88 to 65483 in the lab"));
        }
    }

    #[test]
    fn missing_parts_are_named_with_what_works_without() {
        let mut settings = Settings::etalon(2);
        let kernel = KernelSettings::of(&settings, 20, &KernelParts::default()).expect("Reno needs none");
        assert!(kernel.bpf.is_empty() && kernel.notes.iter().any(|note| note.contains("leeward-bpf")));
        settings.tcp.divisions = 2;
        let error = KernelSettings::of(&settings, 20, &KernelParts::default()).expect_err("none").to_string();
        assert!(error.starts_with("tcp.divisions: no "), "{error}");
        assert!(error.ends_with("`reno`, `cubic` and `dctcp` work without"), "{error}");
    }
}
