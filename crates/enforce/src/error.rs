//! Errors of the enforcer.

use std::io;

use leeward_fabric::input::InputError;

use crate::difference::TooManyClasses;

/// Error that keeps the enforcer from enforcing the promises of an interface.
#[derive(Debug, thiserror::Error)]
pub enum EnforceError {
    /// A program does not start, mostly because it is not installed.
    #[error("{program}: {error}: is {package} installed?")]
    NotStarted {
        /// Program with its arguments.
        program: String,
        /// Reason.
        error: io::Error,
        /// Debian package that has the program.
        package: &'static str,
    },
    /// A program failed.
    #[error("{program}: {problem}{}", right_of(.problem))]
    Program {
        /// Program with its arguments.
        program: String,
        /// Its message.
        problem: String,
    },
    /// The root qdisc of an interface belongs to another owner.
    #[error(
        "{interface}: the root qdisc `{qdisc}` belongs to another owner and is left alone; `tc qdisc del dev {interface} \
         root` removes it"
    )]
    Foreign {
        /// Name of the interface.
        interface: String,
        /// Kind and handle of the qdisc.
        qdisc: String,
    },
    /// The machine has no such interface.
    #[error("{0}: no such interface")]
    NoInterface(String),
    /// Nothing says how fast an interface is.
    #[error("{0}: the speed of the interface is unknown; --rate states it")]
    NoRate(String),
    /// An interface without a carrier whose speed was never known.
    #[error("{0}: no carrier, so its speed is unknown; --rate states it")]
    NoCarrier(String),
    /// An interface without a queue of its own.
    #[error("{0}: its queue has no room for packets; `ip link set {0} txqueuelen 1000` makes room")]
    NoQueue(String),
    /// Neither hook of nftables works.
    #[error(
        "nftables is unavailable, so packets cannot be marked; nothing was changed. Required: the program nft and a kernel \
         with nf_tables. {0}"
    )]
    NoMarks(String),
    /// The kernel does not have HTB.
    #[error("the kernel has no HTB (sch_htb), so nothing can be enforced; nothing was changed. tc: {0}")]
    NoHtb(String),
    /// The kernel does not have what was programmed.
    #[error("{interface}: the kernel does not have what was programmed: {difference}")]
    ReadBack {
        /// Name of the interface.
        interface: String,
        /// The difference.
        difference: String,
    },
    /// The workloads do not fit.
    #[error(transparent)]
    TooManyClasses(#[from] TooManyClasses),
    /// Another enforcer has the lock.
    #[error("an enforcer runs here{}: stop it first", .0.map(|pid| format!(" as process {pid}")).unwrap_or_default())]
    Running(Option<u32>),
    /// The folder of the state file is another user's, or others may write to it.
    #[error(
        "{path}: the folder belongs to user {owner} with mode {mode:o}, and the enforcer runs as user {own}: another user \
         could let it overwrite files; run it as that user, or remove the folder"
    )]
    ForeignFolder {
        /// The folder.
        path: String,
        /// Its owner.
        owner: u32,
        /// Its permissions.
        mode: u32,
        /// User of this process.
        own: u32,
    },
    /// A state file that the enforcer did not write.
    #[error(
        "{path}: {problem}: the state file is broken; remove it, and the root qdiscs `htb 7ee0:` with tc"
    )]
    Broken {
        /// The state file.
        path: String,
        /// Its mistake.
        problem: String,
    },
    /// A file or a system call failed.
    #[error("{what}: {error}")]
    System {
        /// File or operation.
        what: String,
        /// Its error.
        error: io::Error,
    },
}

/// Reason why an enforcer does not start.
#[derive(Debug)]
pub enum StartError {
    /// An option or a file is invalid.
    Input(InputError),
    /// Something else failed.
    Failed(EnforceError),
}

impl From<InputError> for StartError {
    fn from(error: InputError) -> StartError {
        StartError::Input(error)
    }
}

impl From<EnforceError> for StartError {
    fn from(error: EnforceError) -> StartError {
        StartError::Failed(error)
    }
}

impl EnforceError {
    /// Conversion of the error of a file or a system call.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> EnforceError {
        let what = what.into();
        move |error| EnforceError::System { what, error }
    }
}

/// The right that a failed program lacked.
fn right_of(problem: &str) -> &'static str {
    match problem.contains("Operation not permitted") {
        true => ": requires root, or the capability CAP_NET_ADMIN",
        false => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_rights_names_the_missing_capability() {
        let program = || "tc -batch -".to_owned();
        let problem = "RTNETLINK answers: Operation not permitted".to_owned();
        let error = EnforceError::Program { program: program(), problem };
        assert!(error.to_string().ends_with("not permitted: requires root, or the capability CAP_NET_ADMIN"));
        let error = EnforceError::Program { program: program(), problem: "failed".to_owned() };
        assert_eq!(error.to_string(), "tc -batch -: failed");
        assert_eq!(
            EnforceError::Running(Some(7)).to_string(),
            "an enforcer runs here as process 7: stop it first"
        );
    }
}
