//! A network that is up.

use std::process::Command;
use std::thread;

use leeward_fabric::{Bandwidth, Bytes, Cluster};

use super::disks;
use super::options::NetworkOptions;
use super::plan::Plan;
use crate::error::LabError;
use crate::groups::Groups;
use crate::inside::Inside;
use crate::kernel::write_sysctls;
use crate::machine::Machine;
use crate::names::LabName;
use crate::part::Part;
use crate::programs::batch;
use crate::state::{State, files_of};

/// Settings of all machines under `/proc/sys/net`. A kernel does not have those that are newer than it.
const SETTINGS: [(&str, &str); 4] = [
    ("ipv6/conf/all/disable_ipv6", "1"),
    // Racks and pods answer probes of hops without a limit.
    ("ipv4/icmp_ratelimit", "0"),
    ("ipv4/icmp_msgs_per_sec", "1000000"),
    // A connection does not begin with what an earlier one measured.
    ("ipv4/tcp_no_metrics_save", "1"),
];
const FORWARDING: (&str, &str) = ("ipv4/ip_forward", "1");
/// Rate that one processor forwards through two racks, in bits per second: iperf3 between hosts got 450 to 500 Mb/s on a
/// machine of two busy cores.
const CARRIED_BPS: u64 = 500_000_000;

/// A network of namespaces. Dropping the value removes it.
#[derive(Debug)]
pub struct Network {
    /// `None` after the network was released.
    state: Option<State>,
    plan: Plan,
    /// Problem of the disks that does not prevent a lab.
    disks: Result<(), String>,
}

impl Network {
    /// Brings up the network of a cluster. `progress` receives the completed share and returns false to stop.
    ///
    /// # Errors
    /// Returns an error without root or iproute2, for a cluster that namespaces cannot have, or if a lab of this name is
    /// up. Nothing is left behind.
    pub fn up(
        name: &LabName,
        cluster: &Cluster,
        options: NetworkOptions,
        progress: &dyn Fn(f64) -> bool,
    ) -> Result<Network, LabError> {
        let mut plan = Plan::of(name, cluster, options)?;
        let groups = Groups::detect().filter(|_| !plan.disks.is_empty());
        for disk in &plan.disks {
            let machine = &mut plan.machines[disk.host];
            machine.disks.push(disk.folder.clone());
            machine.cgroups =
                groups.iter().map(|groups| groups.folder(&machine.namespace).join("cgroup.procs")).collect();
        }
        let mut parts = disks::parts(&plan.disks, &plan.machines, groups.as_ref());
        parts.extend(plan.machines.iter().flat_map(|machine| files_of(&machine.namespace)));
        parts.extend(plan.machines.iter().map(|machine| Part::Namespace(machine.namespace.clone())));
        let state = State::begin(name, parts, plan.machines.clone())?;
        let unthrottled = "disks are not throttled: this machine has no control groups for it (blkio, or io)";
        let is_throttled = groups.is_some() || plan.disks.is_empty();
        let disks = if is_throttled { Ok(()) } else { Err(unthrottled.to_owned()) };
        let mut network = Network { state: Some(state), plan, disks };
        network.make(groups.as_ref(), progress)?;
        Ok(network)
    }

    fn make(&mut self, groups: Option<&Groups>, progress: &dyn Fn(f64) -> bool) -> Result<(), LabError> {
        let total = self.plan.machines.len() + self.plan.disks.len();
        let proceed = |done: usize| match progress(done as f64 / total as f64) {
            true => Ok(()),
            false => Err(LabError::Stopped),
        };
        proceed(0)?;
        batch("ip", &["-batch", "-"], &self.plan.cables)?;
        proceed(0)?;
        self.configure()?;
        for (at, (machine, addresses)) in self.plan.machines.iter().zip(&self.plan.addresses).enumerate() {
            proceed(at)?;
            batch("ip", &["-n", &machine.namespace, "-batch", "-"], addresses)?;
            let queues = self.plan.queues(at);
            if !queues.is_empty() {
                batch("tc", &["-n", &machine.namespace, "-batch", "-"], &queues)?;
            }
        }
        let Some(state) = &mut self.state else { return Ok(()) };
        state.write_files(&self.plan.names)?;
        let machines = self.plan.machines.len();
        let proceed = |disks: usize| proceed(machines + disks);
        if let Some(problem) = disks::make(state, &self.plan.disks, groups, &proceed)? {
            for machine in state.machines.iter_mut().chain(&mut self.plan.machines) {
                machine.disks.clear();
                machine.cgroups.clear();
            }
            state.write()?;
            self.disks = Err(format!("hosts have no disks: {problem}"));
        }
        Ok(())
    }

    /// Sets the kernel's settings of all machines.
    fn configure(&self) -> Result<(), LabError> {
        let machines = &self.plan.machines;
        let configure = || {
            let inside = Inside::new()?;
            for machine in machines {
                inside.enter(&machine.namespace)?;
                let forwarding = (!machine.is_host).then_some(FORWARDING);
                write_sysctls(SETTINGS.into_iter().chain(forwarding))?;
            }
            Ok(())
        };
        // A thread of its own visits the namespaces, so that the caller's thread never leaves its own.
        thread::scope(|scope| scope.spawn(configure).join().expect("the thread does not panic"))
    }

    /// Name of the lab.
    pub fn name(&self) -> &str {
        self.state.as_ref().map_or("", |state| &state.name)
    }

    /// Hosts in the order of the cluster, and then the machines that forward packets.
    pub fn machines(&self) -> &[Machine] {
        &self.plan.machines
    }

    /// Machine of a name of the cluster file, or of a place such as `r3h1`, `r3`, `p0` or `core`.
    ///
    /// # Errors
    /// Returns an error with similar names if there is none.
    pub fn machine(&self, name: &str) -> Result<&Machine, LabError> {
        Machine::find(&self.plan.machines, name)
    }

    /// Command that runs a program at a machine.
    ///
    /// # Errors
    /// Returns an error if there is no such machine.
    pub fn command(&self, machine: &str, program: &str) -> Result<Command, LabError> {
        let prefix = self.machine(machine)?.prefix();
        let mut command = Command::new(&prefix[0]);
        command.args(&prefix[1..]).arg(program);
        Ok(command)
    }

    /// Runs a function in a thread that is in the namespace of a machine. Sockets that it opens, and threads that it
    /// starts, stay there.
    ///
    /// # Errors
    /// Returns an error if there is no such machine.
    ///
    /// # Panics
    /// Panics if the function does.
    pub fn at<T: Send>(&self, machine: &str, work: impl FnOnce() -> T + Send) -> Result<T, LabError> {
        let namespace = &self.machine(machine)?.namespace;
        let visit = || {
            let inside = Inside::new()?;
            inside.enter(namespace)?;
            Ok(work())
        };
        thread::scope(|scope| {
            scope.spawn(visit).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    /// Changes the rate of one direction of a link, by its name in the cluster: `r3h1:egress`, `r3:uplink`. The options'
    /// scale divides the rate. Rates of single paths stay. The defaults of `queue` and `burst` are those of the options.
    ///
    /// # Errors
    /// Returns an error if there is no such link, or if `tc` fails.
    pub fn limit(
        &self,
        link: &str,
        rate: Bandwidth,
        queue: Option<Bytes>,
        burst: Option<Bytes>,
    ) -> Result<(), LabError> {
        let end = self.plan.links.get(link).ok_or_else(|| LabError::NoLink(link.to_owned()))?;
        let namespace = &self.plan.machines[end.machine].namespace;
        let commands = self.plan.replace(end, rate.0, queue, burst);
        batch("tc", &["-n", namespace, "-batch", "-"], &commands).map(drop)
    }

    /// What the user should know of the network, one line each.
    pub fn notes(&self) -> Vec<String> {
        let largest = self.plan.largest_rate();
        let mut notes = Vec::new();
        if largest > CARRIED_BPS {
            let scale = self.plan.scale().saturating_mul(largest.div_ceil(CARRIED_BPS) as u32);
            notes.push(format!(
                "links of {}: a processor forwards about {}, divided among the links that are in use; \
                 --scale {scale} divides all rates",
                Bandwidth(largest),
                Bandwidth(CARRIED_BPS)
            ));
        }
        notes.extend(self.disks.clone().err());
        notes
    }

    /// Leaves the network up when this process ends, until [`State::down`].
    ///
    /// # Errors
    /// Returns an error if the state file cannot be written.
    pub fn release(mut self) -> Result<State, LabError> {
        let state = self.state.as_ref().expect("only this function takes it").clone().release()?;
        self.state = None;
        Ok(state)
    }

    /// Removes the network.
    ///
    /// # Errors
    /// Returns an error if a part cannot be removed; the state file stays.
    pub fn down(mut self) -> Result<(), LabError> {
        self.state.take().map_or(Ok(()), |state| state.remove())
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        if let Some(state) = &self.state {
            state.remove_on_drop();
        }
    }
}
