//! Programs that the enforcer runs: `tc` and `nft`.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::error::EnforceError;

/// Runs a program with a script on its standard input, and returns its output.
///
/// # Errors
/// An error if the program is missing, or its message if it fails.
pub(crate) fn run(program: &str, arguments: &[&str], script: &str) -> Result<String, EnforceError> {
    let failed = |problem: String| {
        let words: Vec<&str> = std::iter::once(program).chain(arguments.iter().copied()).collect();
        EnforceError::Program { program: words.join(" "), problem }
    };
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
    let mut child =
        child.map_err(|error| failed(format!("{error}: is {} installed?", package_of(program))))?;
    if let Some(mut input) = child.stdin.take() {
        // A program that stops early says why in its own message.
        let _ = input.write_all(script.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
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
    fn a_failed_program_is_an_error_with_its_first_lines() {
        let output = run("sh", &["-c", "cat; exit 0"], "text").expect("a shell");
        assert_eq!(output, "text");
        let error = run("sh", &["-c", "echo; echo one >&2; echo two >&2; echo three >&2; exit 3"], "");
        let error = error.expect_err("it fails").to_string();
        assert!(error.ends_with("exit 3: one; two"), "{error}");
    }
}
