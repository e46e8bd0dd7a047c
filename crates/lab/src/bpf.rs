//! BPF programs of a lab. The loader `leeward-bpf` attaches them to the lab's control group, and holds them as long as
//! its standard input is open, so that they go with the lab.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::LabError;

/// Line of the loader when everything is attached.
const READY: &str = "ready";
/// Begin of the loader's remarks. Other lines of its standard error are a log.
const REMARK: &str = "leeward-bpf: ";
/// Largest number of remarks that are stored.
const MOST_REMARKS: usize = 16;
/// Options of the loader for congestion controls: a lab that wants one cannot do without.
const CONTROLS: [&str; 2] = ["--retcp", "--tdtcp"];

/// Counters of one program, by name.
pub type Counters = Vec<(String, u64)>;

/// Results of detached programs: the counters of each program, and the loader's remarks.
pub(crate) type Finished = (Vec<(String, Counters)>, Vec<String>);

/// BPF programs that are attached. Dropping the value detaches them.
#[derive(Debug)]
pub(crate) struct Bpf {
    child: Child,
    output: BufReader<ChildStdout>,
    errors: Option<JoinHandle<Option<String>>>,
    remarks: Arc<Mutex<Vec<String>>>,
}

impl Bpf {
    /// Attaches programs to a control group. `request` names them as arguments of the loader. Without a congestion
    /// control among them, a lab can do without all: if they cannot be attached, returns the reason.
    pub(crate) fn attach(
        loader: &Path,
        group: &Path,
        request: &[String],
    ) -> Result<Result<Bpf, String>, LabError> {
        match Bpf::load(loader, group, request) {
            Err(error) if !request.iter().any(|word| CONTROLS.contains(&word.as_str())) => {
                Ok(Err(error.to_string()))
            }
            loaded => loaded.map(Ok),
        }
    }

    fn load(loader: &Path, group: &Path, request: &[String]) -> Result<Bpf, LabError> {
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
        let errors = child.stderr.take().expect("the errors are piped");
        let remarks = Arc::default();
        // The loader must not wait for room in the pipe.
        let errors = thread::spawn({
            let remarks = Arc::clone(&remarks);
            move || read_errors(errors, &remarks)
        });
        let mut bpf = Bpf { child, output, errors: Some(errors), remarks };
        let mut line = String::new();
        bpf.output.read_line(&mut line).map_err(|error| failed(error.to_string()))?;
        if line.trim() == READY {
            return Ok(bpf);
        }
        let (remarks, log) = bpf.last_words();
        let problem = remarks.into_iter().next().or(log);
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
        let (remarks, log) = self.last_words();
        let status = self.child.wait().map_err(|error| failed(error.to_string()))?;
        let counters: Vec<(String, Counters)> = text.lines().filter_map(counters_of).collect();
        let rejected = |(name, value): &(String, u64)| name == "rejected" && *value > 0;
        if !status.success() || counters.iter().any(|(_, counters)| counters.iter().any(rejected)) {
            return Err(failed(remarks.into_iter().next().or(log).unwrap_or_else(|| status.to_string())));
        }
        Ok((counters, remarks))
    }

    /// Remarks of the loader so far.
    pub(crate) fn remarks(&self) -> Vec<String> {
        self.remarks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remarks of the loader, which ends, and the last other line that it wrote.
    fn last_words(&mut self) -> (Vec<String>, Option<String>) {
        drop(self.child.stdin.take());
        let log = self.errors.take().and_then(|errors| errors.join().expect("the thread does not panic"));
        (self.remarks(), log)
    }
}

/// Stores the loader's remarks, and passes on all other lines, until it ends. Returns the last other line.
fn read_errors(errors: ChildStderr, remarks: &Mutex<Vec<String>>) -> Option<String> {
    let mut last = None;
    for line in BufReader::new(errors).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line);
        match line.strip_prefix(REMARK) {
            Some(remark) => {
                let mut remarks = remarks.lock().unwrap_or_else(PoisonError::into_inner);
                if remarks.len() < MOST_REMARKS {
                    remarks.push(remark.to_owned());
                }
            }
            // Nobody may read the log.
            None => {
                drop(writeln!(io::stderr(), "{line}"));
                last = Some(line.into_owned());
            }
        }
    }
    last
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

    /// A loader that is a shell script, in a folder of its own.
    fn loader(script: &str) -> std::path::PathBuf {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("leeward-loader-{}-{number}", std::process::id()));
        // Another process writes the file: a process that another test starts now would inherit our descriptor of
        // it, and as long as somebody can write to a file the kernel does not run it.
        let mut install = Command::new("install")
            .args(["-m", "755", "/dev/stdin"])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .expect("install is there");
        let input = install.stdin.take().expect("the input is piped");
        write!({ input }, "#!/bin/sh\n{script}\n").expect("it reads");
        assert!(install.wait().expect("it ends").success());
        path
    }

    #[test]
    fn only_a_congestion_control_makes_a_loader_that_fails_an_error() {
        let path = loader("echo 'leeward-bpf: no struct_ops' >&2; exit 1");
        let attach = |option: &str| Bpf::attach(&path, Path::new("/"), &[option.to_owned()]);
        let reason = attach("--timers").expect("a lab can do without").expect_err("it fails");
        assert!(reason.ends_with(": no struct_ops"), "{reason}");
        assert!(attach("--adu").expect("a lab can do without").is_err());
        for control in CONTROLS {
            let error = attach(control).expect_err("it is required").to_string();
            assert!(error.ends_with(": no struct_ops"), "{error}");
        }
        std::fs::remove_file(path).expect("it is there");
        let path = loader("echo 'cannot open libbpf.so.1' >&2; exit 127");
        let reason =
            Bpf::attach(&path, Path::new("/"), &["--timers".to_owned()]).expect("a lab can do without");
        let reason = reason.expect_err("it fails");
        assert!(reason.ends_with(": cannot open libbpf.so.1"), "{reason}");
        std::fs::remove_file(path).expect("it is there");
    }

    #[test]
    fn a_long_log_does_not_stop_a_loader_and_its_remarks_are_read_at_once() {
        let script = "i=0; while [ $i -lt 4000 ]; do echo 'log: a line of more than sixty letters, as libbpf writes' >&2; \
                      i=$((i+1)); done; echo 'leeward-bpf: mended' >&2; echo ready; cat; echo retcp ups=3";
        let path = loader(script);
        let bpf = Bpf::attach(&path, Path::new("/"), &[]).expect("no error").expect("it is ready");
        while bpf.remarks().is_empty() {
            std::thread::yield_now();
        }
        let (counters, remarks) = bpf.finish().expect("it ends well");
        assert_eq!(remarks, ["mended"]);
        assert_eq!(counters, [("retcp".to_owned(), vec![("ups".to_owned(), 3)])]);
        std::fs::remove_file(path).expect("it is there");
    }

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
