//! Tests of state files.

use super::*;

fn name(of: &str) -> LabName {
    format!("test-{of}-{}", std::process::id()).parse().expect("a valid name")
}

fn is_root() -> bool {
    leeward_testing::require(
        "labs",
        if rustix::process::geteuid().is_root() { Ok(()) } else { Err("root is needed") },
    )
    .is_some()
}

#[test]
fn a_lab_has_one_owner_and_its_name_is_in_use_until_it_is_removed() {
    if !is_root() {
        return;
    }
    let name = name("owner");
    let state = State::begin(&name, Vec::new(), Vec::new()).expect("a new name");
    assert!(state.is_up() && State::all().contains(&name) && State::since(&name).is_some());
    assert!(matches!(State::begin(&name, Vec::new(), Vec::new()), Err(LabError::InUse { .. })));
    assert!(matches!(State::down(&name), Err(LabError::Owned { .. })));
    let state = state.release().expect("it is ours");
    assert!(matches!(State::begin(&name, Vec::new(), Vec::new()), Err(LabError::InUse { .. })));
    assert_eq!(State::read(&name).expect("a state file"), Some(state));
    State::down(&name).expect("nobody owns it");
    assert!(matches!(State::down(&name), Err(LabError::NotUp { .. })));
}

#[test]
fn what_a_process_left_that_has_ended_is_removed_by_the_next_lab_of_the_name() {
    if !is_root() {
        return;
    }
    let name = name("left");
    let [part, file] = files_of(&name.namespace("r0h0"));
    let Part::Folder(folder) = part.clone() else { unreachable!() };
    let parts = vec![part, file];
    let state = State::begin(&name, parts.clone(), Vec::new()).expect("a new name");
    state.write_files("").expect("a folder");
    let ended = Process { started: 1, ..Process::this() };
    state.with_owner(Some(ended)).expect("it is ours");
    let state = State::begin(&name, parts, Vec::new()).expect("the owner has ended");
    assert!(!folder.exists());
    state.remove().expect("it is ours");
}

#[test]
fn a_broken_state_file_is_named_and_can_be_removed() {
    if !is_root() {
        return;
    }
    let name = name("broken");
    State::begin(&name, Vec::new(), Vec::new()).expect("a new name");
    fs::write(State::path(name.as_str()), "{").expect("root may write");
    let [Part::Folder(folder), _] = files_of(&name.namespace("r0h0")) else { unreachable!() };
    fs::create_dir_all(&folder).expect("root may write");
    assert!(State::all().contains(&name));
    for error in [State::read(&name).map(drop), State::begin(&name, Vec::new(), Vec::new()).map(drop)] {
        assert!(matches!(error, Err(LabError::Broken { .. })), "{error:?}");
    }
    State::down(&name).expect("everything has its name");
    assert!(!folder.exists() && !State::all().contains(&name));
}

#[test]
fn without_a_usable_state_file_everything_of_the_name_is_removed() {
    if !is_root() {
        return;
    }
    let name = name("lost");
    let [Part::Folder(files), Part::File(hosts)] = files_of(&name.namespace("r0h0")) else { unreachable!() };
    let (folder, images) = (folder_of(&name), Path::new(IMAGES).join(name.as_str()));
    let group = crate::cgroup::folder(&name).ok();
    // After a reboot there is no state file; a lab with circuits has files in its folder.
    for broken in [false, true] {
        for path in [&files, &folder, &images, &folder.join("r0h0/disk")].into_iter().chain(&group) {
            fs::create_dir_all(path).expect("root may write");
        }
        for path in [&hosts, &folder.join(VIEW), &folder.join("demand"), &images.join("r0h0-disk")] {
            fs::write(path, "").expect("root may write");
        }
        if broken {
            fs::write(State::path(name.as_str()), "{").expect("root may write");
        } else {
            let error =
                State::begin(&name, files_of(&name.namespace("r0h0")).into(), Vec::new()).expect_err("left");
            assert!(error.to_string().contains(&format!("`leeward lab down --name {name}`")), "{error}");
        }
        State::down(&name).expect("everything has its name");
        for path in [&files, &folder, &images].into_iter().chain(&group) {
            assert!(!path.exists(), "{}", path.display());
        }
        assert!(!State::all().contains(&name));
    }
    assert!(matches!(State::down(&name), Err(LabError::NotUp { .. })));
}

#[test]
fn the_error_that_ended_a_lab_stays_until_it_is_removed_or_a_lab_of_the_name_comes() {
    if !is_root() {
        return;
    }
    let name = name("failed");
    Failure::record(&name, "no idea").expect("root may write");
    let failure = Failure::of(&name).expect("it was recorded");
    assert_eq!((&failure.name, failure.text.as_str()), (&name, "no idea"));
    assert!(Failure::all().contains(&failure) && !State::all().contains(&name));
    assert!(Failure::not_up(&name).to_string().ends_with("not up: ended by an error: no idea"));
    State::down(&name).expect("the error is left");
    assert_eq!(Failure::of(&name), None);
    Failure::record(&name, "no idea").expect("root may write");
    let state = State::begin(&name, Vec::new(), Vec::new()).expect("a new name");
    assert_eq!(Failure::of(&name), None);
    state.remove().expect("it is ours");
    assert!(Failure::not_up(&name).to_string().ends_with("not up"));
}

#[test]
fn a_state_file_of_an_earlier_version_has_no_disks_groups_and_environment() {
    let text = r#"{"place": "r0h0", "name": "a", "namespace": "leeward-a-r0h0", "address": "10.0.0.2", "is_host": true}"#;
    let machine: Machine = serde_json::from_str(text).expect("a machine");
    assert!(machine.disks.is_empty() && machine.cgroups.is_empty() && machine.environment.is_empty());
}

#[test]
fn a_process_that_ends_without_removing_its_lab_leaves_it_to_the_caller() {
    if !is_root() {
        return;
    }
    let name = name("leaves");
    let mut child = std::process::Command::new("sleep").arg("600").spawn().expect("a program");
    let [folder, hosts] = files_of(&name.namespace("r0h0"));
    let view = Part::File(folder_of(&name).join(VIEW));
    let parts = vec![Part::Folder(folder_of(&name)), view, folder.clone(), hosts];
    let state = State::begin(&name, parts, Vec::new()).expect("a new name");
    state.write_files("").expect("a folder");
    state.with_owner(Some(Process::of(child.id()).expect("it runs"))).expect("it is ours");
    State::down(&name).expect("its process ends");
    child.wait().expect("its status");
    assert!(!folder.exists() && !State::all().contains(&name));
}

#[test]
fn of_many_threads_one_makes_a_lab() {
    if !is_root() {
        return;
    }
    let name = name("race");
    let ended = Process { started: 1, ..Process::this() };
    State::begin(&name, Vec::new(), Vec::new())
        .and_then(|state| state.with_owner(Some(ended)))
        .expect("a new name");
    let states: Vec<State> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| State::begin(&name, Vec::new(), Vec::new()).ok())).collect();
        threads.into_iter().filter_map(|thread| thread.join().expect("no panic")).collect()
    });
    assert_eq!(states.len(), 1);
    states[0].remove().expect("it is ours");
}
