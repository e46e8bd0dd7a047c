//! Instances: they tell an enforcer from others of its name.

use std::fs;
use std::os::unix::fs::MetadataExt;

use leeward_records::schema::Name;

/// Number of this boot of the machine.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// Network namespace of this thread.
const NAMESPACE: &str = "/proc/thread-self/ns/net";

/// Instance of an enforcer at a place, such as the addresses that it listens on. A program that starts again has the same
/// one, so its promises are in force at once. One on another machine, in another network namespace or at another place has
/// another one, so two enforcers of a name never take turns.
pub(crate) fn instance(place: &str) -> String {
    let boot = fs::read_to_string(BOOT).unwrap_or_default();
    let namespace = fs::metadata(NAMESPACE).map(|file| file.ino()).unwrap_or_default();
    let text = format!("{} {namespace} {place}", boot.trim());
    text.trim_end().chars().filter(|letter| !letter.is_control()).take(Name::LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_is_the_same_each_time_and_differs_between_places() {
        assert_eq!(instance(""), instance(""));
        assert_ne!(instance("0.0.0.0:12049"), instance("0.0.0.0:12050"));
        let long = instance(&"a".repeat(1_000));
        assert!(long.chars().count() == Name::LONGEST && !long.contains('\n'), "{long}");
    }
}
