//! Arguments of the command line.

use serde::Deserialize;

/// Arguments of the command line, of `leeward-nfs` and of `leeward enforce nfs`, which passes them as JSON.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Arguments {
    /// Export to serve; may be given several times, for volumes on one device.
    #[arg(long = "export", value_name = "SERVER:/PATH", required = true)]
    pub exports: Vec<String>,
    /// Address and port for the clients of an export, once for each export in the same order; port 0 picks a free one
    /// [default: 0.0.0.0:12049, and the following ports].
    #[arg(long = "listen", value_name = "HOST:PORT")]
    pub listen: Vec<String>,
    /// Port of the server's NFS [default: 2049].
    #[arg(long, value_name = "PORT")]
    pub nfsport: Option<u16>,
    /// Port of the server's MOUNT [default: from its port mapper].
    #[arg(long, value_name = "PORT")]
    pub mountport: Option<u16>,
    /// Connect to the server from reserved ports, as exports with the option `secure` require.
    #[arg(long)]
    pub reserved_port: bool,
    /// Accept clients from any port also with --reserved-port. Otherwise it accepts them from reserved ports alone, because
    /// the server takes calls from such a port for calls of a machine's root.
    #[arg(long)]
    pub any_port: bool,
    /// Address or prefix of clients that may connect, or all; may be given several times. The server sees the proxy alone, so
    /// the client lists of its exports do not apply [default: this machine, for addresses of loopback; required otherwise].
    #[arg(long = "allow", value_name = "ADDRESS")]
    pub allow: Vec<String>,
    /// Workloads with their priorities and limits, an SLO file; `leeward slo pack` writes one [default: none, all
    /// requests are best effort].
    #[arg(long, value_name = "FILE")]
    pub workloads: Option<String>,
    /// Cluster file of the workloads: they get the priorities and limits that their file does not state, as in `leeward slo`
    /// [default: none, the file states them].
    #[arg(long, value_name = "FILE", requires = "workloads")]
    pub cluster: Option<String>,
    /// URL of a controller, http or https, whose promises are enforced in place of workloads of a file; give each controller
    /// that shares a store.
    #[arg(long = "controller", value_name = "URL", conflicts_with = "workloads")]
    pub controllers: Vec<String>,
    /// Name of this enforcer at the controller [default: nfs@HOST].
    #[arg(long, value_name = "NAME", requires = "controllers")]
    pub name: Option<String>,
    /// Length of the lease: without a controller for this time, everything is best effort [default: 15s].
    #[arg(long, value_name = "TIME", requires = "controllers")]
    pub lease: Option<String>,
    /// File with a token of role report.
    #[arg(long, value_name = "FILE", requires = "controllers")]
    pub token_file: Option<String>,
    /// File with the certificate authorities of the controller [default: the system's].
    #[arg(long, value_name = "FILE", requires = "controllers")]
    pub ca: Option<String>,
    /// DSCP of packets to controllers: a name, such as cs6, or 0 to 63.
    #[arg(long, value_name = "DSCP", requires = "controllers")]
    pub dscp: Option<String>,
    /// Name of the server in the cluster: a host, or HOST:DEVICE for the volumes of one device [default: the only server of
    /// the workloads; with a controller, the machine's name].
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Export of a workload, for clients with several workloads; may be given several times.
    #[arg(long = "workload", value_name = "NAME=PATH")]
    pub workload_exports: Vec<String>,
    /// Handling of requests over a limit, unless the file of the workloads states it: demoted, they come after all others; or
    /// held, they wait for tokens [default: that of a promise, or demoted].
    #[arg(long, value_name = "HANDLING")]
    pub over: Option<String>,
    /// Addresses of hosts or workloads: YAML, CSV, or lines as in /etc/hosts [default: the system's names].
    #[arg(long, value_name = "FILE")]
    pub addresses: Option<String>,
    /// Device file of the volumes [default: that of the workloads].
    #[arg(long, value_name = "FILE")]
    pub device: Option<String>,
    /// Requests at the device at once [default: from the device file, or 1].
    #[arg(long, value_name = "NUMBER")]
    pub outstanding: Option<u32>,
    /// Reads at the device at once [default: from the device file].
    #[arg(long, value_name = "NUMBER")]
    pub outstanding_reads: Option<u32>,
    /// Writes at the device at once [default: from the device file].
    #[arg(long, value_name = "NUMBER")]
    pub outstanding_writes: Option<u32>,
    /// Bytes of reads at the device at once, or none [default: from the device file].
    #[arg(long, value_name = "SIZE")]
    pub outstanding_read_bytes: Option<String>,
    /// Bytes of writes at the device at once, or none [default: from the device file].
    #[arg(long, value_name = "SIZE")]
    pub outstanding_write_bytes: Option<String>,
    /// Requests and bytes that start behind a request of a higher priority, such as 8,1MiB, one of the two, or none [default:
    /// from the device file].
    #[arg(long, value_name = "NUMBER,SIZE")]
    pub behind: Option<String>,
    /// Bytes of nearly sequential writes that start together, and the largest gap between two of them, such as 1MiB,64KiB, or
    /// none [default: from the device file].
    #[arg(long, value_name = "SIZE,SIZE")]
    pub write_batch: Option<String>,
    /// Order of requests at the device: priority, fifo, shares or deadline. Any other than priority is for comparisons
    /// [default: priority].
    #[arg(long, value_name = "ORDER")]
    pub order: Option<String>,
    /// Folder for traces of the requests, a file for each workload.
    #[arg(long, value_name = "DIR")]
    pub traces: Option<String>,
    /// Longest time of a trace file [default: 1h].
    #[arg(long, value_name = "TIME", requires = "traces")]
    pub trace_time: Option<String>,
    /// Largest number of bytes of all traces in the folder [default: 10GB].
    #[arg(long, value_name = "SIZE", requires = "traces")]
    pub trace_limit: Option<String>,
    /// Time between two reports [default: one at the end].
    #[arg(long, value_name = "TIME")]
    pub interval: Option<String>,
    /// Largest payload of a call or reply [default: 4MiB].
    #[arg(long, value_name = "SIZE")]
    pub message: Option<String>,
    /// Bytes of calls and replies that the proxy holds [default: 256MiB].
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<String>,
    /// Largest number of connections [default: 1024].
    #[arg(long, value_name = "NUMBER")]
    pub connections: Option<usize>,
    /// Longest time of a request at the server, after which others may start [default: 30s].
    #[arg(long, value_name = "TIME")]
    pub patience: Option<String>,
    /// Threads of the proxy [default: 1].
    #[arg(long, value_name = "NUMBER")]
    pub jobs: Option<usize>,
}
