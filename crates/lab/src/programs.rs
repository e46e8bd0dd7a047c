//! Programs that the lab runs.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::error::LabError;

/// Runs a program with a script on its standard input.
///
/// # Errors
/// Returns an error if the program is missing, or its message if it fails.
pub(crate) fn batch(program: &str, arguments: &[&str], script: &str) -> Result<String, LabError> {
    let failed = |problem: String| {
        let mut words = vec![program];
        words.extend(arguments);
        LabError::Program { program: words.join(" "), problem }
    };
    let child = Command::new(program)
        .args(arguments)
        // Ctrl-C at the terminal stops the lab, and not the program that removes it.
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
    Err(failed(text.lines().next().unwrap_or("failed without a message").to_owned()))
}

/// Debian package of a program.
fn package_of(program: &str) -> &'static str {
    match program {
        "mkfs.ext4" => "e2fsprogs",
        "mount" | "umount" => "mount (util-linux)",
        _ => "iproute2",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let error = batch("no-such-ip", &["-n"], "").expect_err("missing").to_string();
        assert!(
            error.starts_with("no-such-ip -n: ") && error.ends_with(": is iproute2 installed?"),
            "{error}"
        );
        assert_eq!(package_of("mkfs.ext4"), "e2fsprogs");
        assert_eq!(package_of("mount"), "mount (util-linux)");
    }
}
