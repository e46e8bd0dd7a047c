//! Start of the service: checks of flags and settings before anything runs.

use std::path::Path;

use leeward_controller::{Flags, Ready};
use leeward_fabric::input::InputError;
use leeward_testing::clusters::RACKS_2X2;

fn flags(listen: &str) -> (tempfile::TempDir, Flags) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("c.yaml");
    std::fs::write(&file, RACKS_2X2).expect("a file");
    let cluster = Some(file.display().to_string());
    let flags = Flags { cluster, listen: Some(listen.to_owned()), ..Flags::default() };
    (folder, flags)
}

fn error_of(flags: Flags) -> InputError {
    Ready::new(flags).err().expect("an error")
}

#[test]
fn without_tokens_the_service_listens_only_on_loopback() {
    let (folder, mut flags) = flags("0.0.0.0:7600");
    let error = error_of(flags.clone());
    assert_eq!(error.file, "--listen");
    assert!(error.message.contains("leeward token new"), "{error}");
    let tokens = folder.path().join("tokens");
    std::fs::write(&tokens, "").expect("a file");
    flags.tokens = Some(tokens.display().to_string());
    assert!(Ready::new(flags.clone()).is_ok());
    flags.tokens = None;
    for listen in ["127.0.0.1:0", "[::1]:0", "127.8.8.8:1"] {
        let flags = Flags { listen: Some(listen.to_owned()), ..flags.clone() };
        assert!(Ready::new(flags).is_ok(), "{listen}");
    }
}

#[test]
fn the_default_store_is_named_after_the_cluster_or_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, store) in [
        ("", "lab.db"),
        ("name: null, ", "lab.db"),
        ("name: east, ", "east.db"),
        ("name: a/../b, ", "a-..-b.db"),
    ] {
        let file = folder.path().join("lab.yaml");
        let text = RACKS_2X2.replacen('{', &format!("{{{name}"), 1);
        std::fs::write(&file, text).expect("a file");
        let cluster = Some(file.display().to_string());
        let ready = Ready::new(Flags { cluster, ..Flags::default() });
        let ready = ready.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(ready.store().and_then(Path::file_name), Some(store.as_ref()), "{name}");
    }
}

#[test]
fn start_errors_name_the_flag_or_file_at_fault() {
    let (folder, flags) = flags("127.0.0.1:0");
    for (listen, part) in [("7600", "an address and a port"), ("127.0.0.1:70000", "an address and a port")] {
        let error = error_of(Flags { listen: Some(listen.to_owned()), ..flags.clone() });
        assert!(error.file == "--listen" && error.message.contains(part), "{error}");
    }
    assert_eq!(error_of(Flags { policy: Some("best".to_owned()), ..flags.clone() }).file, "--policy");
    assert_eq!(error_of(Flags { cluster: None, ..flags.clone() }).file, "--cluster");
    let config = folder.path().join("leeward.toml");
    std::fs::write(&config, "[policies]\ntasks = 'best'\n").expect("a file");
    let config = config.display().to_string();
    let error = error_of(Flags { config: Some(config.clone()), ..flags });
    assert_eq!((error.file, error.field.as_deref()), (config, Some("policies.tasks")));
}

#[test]
fn an_invalid_hook_is_named_with_its_field_and_its_file() {
    let (folder, flags) = flags("127.0.0.1:0");
    let config = folder.path().join("leeward.yaml").display().to_string();
    for (hook, field, part) in [
        ("{url: scheduler}", "moves.hook.url", "expected the address of a hook"),
        ("{url: scheduler, http: missing.yaml}", "moves.hook.url", "expected the address of a hook"),
        ("{url: 'http://scheduler', http: missing.yaml}", "moves.hook.http", "missing.yaml: "),
        ("{url: 'http://scheduler', timeout: 5min}", "moves.hook.timeout", "below `moves.timeout`"),
        ("{url: 'http://scheduler', name: ''}", "moves.hook.name", "expected 1 to 200 characters"),
    ] {
        std::fs::write(&config, format!("moves: {{hook: {hook}}}\n")).expect("a file");
        let error = error_of(Flags { config: Some(config.clone()), ..flags.clone() });
        assert_eq!((&error.file, error.field.as_deref()), (&config, Some(field)), "{error}");
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn a_service_with_a_shared_store_needs_an_advertised_address() {
    let (folder, mut flags) = flags("0.0.0.0:0");
    let file = |name: &str, text: &str| {
        let file = folder.path().join(name).display().to_string();
        std::fs::write(&file, text).expect("a file");
        Some(file)
    };
    flags.tokens = file("tokens", "");
    flags.store = Some("postgres://lee:secret@127.0.0.1/leeward".to_owned());
    flags.config = file("a.yaml", "{}");
    let error = error_of(flags.clone());
    assert_eq!(error.field.as_deref(), Some("advertise"), "{error}");
    flags.config = file("b.yaml", "advertise: here");
    assert_eq!(error_of(flags.clone()).field.as_deref(), Some("advertise"));
    flags.config = file("d.yaml", "advertise: https://here:7600");
    let Ok(ready) = Ready::new(flags.clone()) else { panic!("the settings are valid") };
    assert_eq!(ready.store(), Some(Path::new("postgres://lee@127.0.0.1:5432/leeward")));
    flags.store = Some("postgres://lee:secret@127.0.0.1:many/leeward".to_owned());
    let error = error_of(flags);
    assert!(error.file == "--store" && !error.to_string().contains("secret"), "{error}");
}
