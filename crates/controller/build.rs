//! Embeds the dashboard if `web/dist` was built; without it, the service reports that the dashboard is missing.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Adds the paths of all files in a folder.
fn files(folder: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = package.join("../../web/dist");
    // Cargo can only watch existing paths. A missing path would count as changed on every build.
    let _ = fs::create_dir_all(&dist);
    println!("cargo:rerun-if-changed={}", dist.display());
    println!("cargo:rerun-if-changed=build.rs");
    let mut paths = Vec::new();
    if dist.join("index.html").is_file() {
        files(&dist, &mut paths)?;
    }
    let name = |path: PathBuf| {
        let name = path.strip_prefix(&dist).unwrap_or(&path).to_string_lossy().into_owned();
        (name, path.display().to_string())
    };
    let mut rows: Vec<(String, String)> = paths.into_iter().map(name).collect();
    rows.sort();
    let row = |(name, path): &(String, String)| format!("    ({name:?}, include_bytes!({path:?})),\n");
    let table: String = rows.iter().map(row).collect();
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("dashboard.rs");
    fs::write(out, format!("&[\n{table}]\n"))
}
