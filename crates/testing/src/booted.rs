//! A systemd that boots on a throwaway copy of the machine, by `scripts/in-systemd`.

use std::path::Path;
use std::process::Command;

/// Runs a shell script as root in a booted copy of the machine with these files: where each is, relative to the repository,
/// and its path in the copy. Returns the output; `None` if the machine cannot boot one, after it printed the reason. Machines
/// of CI often cannot: they are containers without privileges.
///
/// # Panics
/// Panics with the output if the script fails.
pub fn run(script: &str, files: &[(&str, &str)]) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(root.join("scripts/in-systemd"));
    command.current_dir(&root).arg(script);
    command.args(files.iter().map(|(source, path)| format!("{source}:{path}")));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let result = command.output().expect("the script is executable");
    if result.status.code() == Some(77) {
        println!("skipped: no systemd that boots: {}", text(&result.stderr).trim());
        return None;
    }
    let output = text(&result.stdout) + &text(&result.stderr);
    assert!(result.status.success(), "{output}");
    Some(output)
}
