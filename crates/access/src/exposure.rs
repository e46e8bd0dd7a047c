//! Files with secrets that other users of the machine can read or write.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use leeward_settings::Settings;

/// Permissions of users that are neither the owner nor in the group of a file.
const OTHERS: u32 = 0o006;

/// Files with secrets: the store's file, tokens, keys, and credentials.
pub fn secrets(settings: &Settings, store: Option<&Path>) -> Vec<PathBuf> {
    let key = settings.tls.as_ref().map(|tls| &tls.key);
    let http = settings.telemetry.prometheus.as_ref().and_then(|prometheus| prometheus.http.as_ref());
    let hook = settings.moves.hook.as_ref().and_then(|hook| hook.http.as_ref());
    let files = [settings.tokens.as_ref(), key, settings.probes.secret.as_ref(), http, hook];
    store.map(PathBuf::from).into_iter().chain(files.into_iter().flatten().map(PathBuf::from)).collect()
}

/// A warning for each file that other users can read or write. A missing file is no matter of permissions.
pub fn warnings(files: &[PathBuf]) -> Vec<String> {
    let warning = |file: &PathBuf| {
        let mode = std::fs::metadata(file).ok()?.permissions().mode();
        (mode & OTHERS != 0).then(|| {
            let file = file.display();
            format!("{file}: other users of this machine can read or write it; chmod o-rw {file}")
        })
    };
    files.iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_others_can_read_or_write_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, mode| {
            let path = folder.path().join(name);
            std::fs::write(&path, "secret").expect("a file");
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).expect("a mode");
            path
        };
        let safe = [file("owner", 0o600), file("group", 0o640), folder.path().join("missing")];
        assert_eq!(warnings(&safe), Vec::<String>::new());
        for mode in [0o644, 0o602] {
            let open = file("open", mode);
            let texts = warnings(std::slice::from_ref(&open));
            let expected = format!("{}: other users of this machine", open.display());
            assert!(texts.len() == 1 && texts[0].starts_with(&expected), "{texts:?}");
        }
    }
}
