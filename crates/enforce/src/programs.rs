//! Programs that the enforcer runs: `tc` and `nft`.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::error::EnforceError;

/// Time limit of a program. The loop of the enforcer waits for it, and systemd's watchdog waits a minute for the loop.
const LONGEST: Duration = Duration::from_secs(10);

/// Runs a program with a script on its standard input, and returns its output. A program that takes longer than ten
/// seconds is killed.
///
/// # Errors
/// An error if the program is missing or takes too long, or its message if it fails.
pub(crate) fn run(program: &str, arguments: &[&str], script: &str) -> Result<String, EnforceError> {
    run_within(LONGEST, program, arguments, script)
}

fn run_within(
    limit: Duration,
    program: &str,
    arguments: &[&str],
    script: &str,
) -> Result<String, EnforceError> {
    let words = || {
        let words: Vec<&str> = std::iter::once(program).chain(arguments.iter().copied()).collect();
        words.join(" ")
    };
    let failed = |problem: String| EnforceError::Program { program: words(), problem };
    let child = Command::new(program)
        .args(arguments)
        // Messages are recognized by their English text.
        .env("LC_ALL", "C")
        // Ctrl-C at the terminal stops the enforcer, and not the program that undoes its work.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|error| EnforceError::NotStarted {
        program: words(),
        error,
        package: package_of(program),
    })?;
    let group = Pid::from_child(&child);
    let (result, results) = channel();
    let script = script.to_owned();
    // A thread of its own, because a program that hangs in the kernel does not end when it is killed.
    let wait = thread::Builder::new().name("leeward-program".to_owned()).spawn(move || {
        if let Some(mut input) = child.stdin.take() {
            // A program that stops early says why in its own message.
            let _ = input.write_all(script.as_bytes());
        }
        let _ = result.send(child.wait_with_output());
    });
    let received = wait.map(|_| results.recv_timeout(limit));
    if !matches!(received, Ok(Ok(_))) {
        // It may have ended by now.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let received = received.map_err(|error| failed(error.to_string()))?;
    let output =
        received.map_err(|_| failed(format!("killed: no result after {} s", limit.as_secs_f64())))?;
    let output = output.map_err(|error| failed(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    // The first line is the reason, and the second one often the line of a batch.
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(2).collect();
    Err(failed(if lines.is_empty() { "failed without a message".to_owned() } else { lines.join("; ") }))
}

/// Debian package of a program.
fn package_of(program: &str) -> &'static str {
    if program == "nft" { "nftables" } else { "iproute2" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = run("no-such-tc", &["-j"], "").expect_err("missing").to_string();
        assert!(
            error.starts_with("no-such-tc -j: ") && error.ends_with(": is iproute2 installed?"),
            "{error}"
        );
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("pid").display().to_string();
        // Its child has the output too, so the output would stay open.
        let script = format!("sleep 600 & echo $! > {file}; wait");
        let error = run_within(Duration::from_millis(300), "sh", &["-c", &script], "").expect_err("it hangs");
        assert!(error.to_string().ends_with(": killed: no result after 0.3 s"), "{error}");
        let child = std::fs::read_to_string(&file).expect("the shell began");
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        // A zombie waits for its new parent.
        while !state().is_empty() && !state().contains(") Z") {
            thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_failed_program_is_an_error_with_its_first_lines() {
        let output = run("sh", &["-c", "cat; exit 0"], "text").expect("a shell");
        assert_eq!(output, "text");
        let error = run("sh", &["-c", "echo; echo one >&2; echo two >&2; echo three >&2; exit 3"], "");
        let error = error.expect_err("it fails").to_string();
        assert!(error.ends_with("exit 3: one; two"), "{error}");
    }
}
