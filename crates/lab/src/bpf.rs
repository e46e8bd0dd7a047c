//! BPF programs of a lab. The loader `leeward-bpf` attaches them to the lab's control group, and holds them as long as
//! its standard input is open, so that they go with the lab.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::error::LabError;

/// Line of the loader when everything is attached.
const READY: &str = "ready";

/// Counters of one program, by name.
pub type Counters = Vec<(String, u64)>;

/// Results of detached programs: the counters of each program, and the loader's remarks.
pub(crate) type Finished = (Vec<(String, Counters)>, Vec<String>);

/// BPF programs that are attached. Dropping the value detaches them.
#[derive(Debug)]
pub(crate) struct Bpf {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Bpf {
    /// Attaches programs to a control group. `request` names them as arguments of the loader.
    pub(crate) fn attach(loader: &Path, group: &Path, request: &[String]) -> Result<Bpf, LabError> {
        let program = loader.display().to_string();
        let failed = |problem: String| LabError::Program { program: program.clone(), problem };
        let mut child = Command::new(loader)
            .arg("--cgroup")
            .arg(group)
            .args(request)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        let output = BufReader::new(child.stdout.take().expect("the output is piped"));
        let mut bpf = Bpf { child, output };
        let mut line = String::new();
        bpf.output.read_line(&mut line).map_err(|error| failed(error.to_string()))?;
        if line.trim() == READY {
            return Ok(bpf);
        }
        let problem = bpf.remarks().into_iter().next();
        Err(failed(problem.unwrap_or_else(|| "ended without a message".to_owned())))
    }

    /// Detaches the programs. Returns the counters of each, and what the loader remarked.
    ///
    /// # Errors
    /// Returns an error if the loader failed, or the kernel rejected a setting of a connection.
    pub(crate) fn finish(mut self) -> Result<Finished, LabError> {
        let failed = |problem: String| LabError::Program { program: "leeward-bpf".to_owned(), problem };
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.output.read_to_string(&mut text).map_err(|error| failed(error.to_string()))?;
        let remarks = self.remarks();
        let status = self.child.wait().map_err(|error| failed(error.to_string()))?;
        let counters: Vec<(String, Counters)> = text.lines().filter_map(counters_of).collect();
        let rejected = |(name, value): &(String, u64)| name == "rejected" && *value > 0;
        if !status.success() || counters.iter().any(|(_, counters)| counters.iter().any(rejected)) {
            return Err(failed(remarks.into_iter().next().unwrap_or_else(|| status.to_string())));
        }
        Ok((counters, remarks))
    }

    /// Lines of the loader's standard error, which it closes at its end.
    fn remarks(&mut self) -> Vec<String> {
        drop(self.child.stdin.take());
        let mut text = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            // If the read fails, an error has a shorter message.
            let _ = errors.read_to_string(&mut text);
        }
        text.lines().map(|line| line.trim_start_matches("leeward-bpf: ").to_owned()).collect()
    }
}

impl Drop for Bpf {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Counters in a line such as `retcp ups=3 downs=2 mended=0`.
fn counters_of(line: &str) -> Option<(String, Counters)> {
    let mut words = line.split_whitespace();
    let program = words.next()?.to_owned();
    let counters = words.map(|word| {
        let (name, value) = word.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    });
    Some((program, counters.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_program_and_its_counters() {
        let (program, counters) = counters_of("retcp ups=3 downs=2").expect("counters");
        assert_eq!(program, "retcp");
        assert_eq!(counters, [("ups".to_owned(), 3), ("downs".to_owned(), 2)]);
        assert_eq!(counters_of(""), None);
        assert_eq!(counters_of("retcp ups"), None);
        assert_eq!(counters_of("retcp ups=x"), None);
    }
}
