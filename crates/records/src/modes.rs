//! Modes: the decider of requests of each kind, Leeward or the default policy.

use std::fmt;
use std::str::FromStr;

use leeward_engine::is_in_share;
use leeward_fabric::Nanos;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Decider of the requests of a kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// The default policy decides, and Leeward's policy does not run.
    Off,
    /// The default policy decides. The choice of Leeward's policy is kept beside the decision.
    Shadow,
    /// Leeward's policy decides for a share of the requests, and the default policy for the others.
    Canary(Canary),
    /// Leeward's policy decides.
    #[default]
    On,
}

/// Part of the requests that Leeward's policy decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Canary {
    /// Share in hundredths of a percent, from 1 to 9,999.
    pub share: u16,
    /// Property of a request whose hash decides.
    pub by: CanaryBy,
}

/// Property of a request whose hash decides if it is in the canary.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CanaryBy {
    /// The request itself.
    #[default]
    Request,
    /// Its client. A request without a client is not in the canary.
    Client,
    /// The rack of its writer. A request whose writer is outside the cluster is not in the canary.
    Rack,
}

impl Mode {
    /// The mode for moves: a canary is drawn by rack.
    pub fn by_rack(self) -> Mode {
        match self {
            Mode::Canary(canary) => Mode::Canary(Canary { by: CanaryBy::Rack, ..canary }),
            mode => mode,
        }
    }
}

impl CanaryBy {
    /// The property as a word.
    pub fn word(self) -> &'static str {
        match self {
            CanaryBy::Request => "request",
            CanaryBy::Client => "client",
            CanaryBy::Rack => "rack",
        }
    }
}

impl Canary {
    /// True if Leeward's policy decides for this value of the property. The same value is in every larger share too.
    pub fn takes(self, value: &[u8]) -> bool {
        is_in_share(value, self.share)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mode::Off => f.write_str("off"),
            Mode::Shadow => f.write_str("shadow"),
            Mode::On => f.write_str("on"),
            Mode::Canary(Canary { share, by }) => {
                let (whole, part) = (share / 100, share % 100);
                let share = match (part / 10, part % 10) {
                    (0, 0) => format!("{whole}%"),
                    (tenths, 0) => format!("{whole}.{tenths}%"),
                    _ => format!("{whole}.{part:02}%"),
                };
                match by {
                    CanaryBy::Request => write!(f, "canary:{share}"),
                    by => write!(f, "canary:{share}:{}", by.word()),
                }
            }
        }
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Mode, String> {
        let wrong = || {
            format!(
                "`{}`: expected off, shadow, on, or canary with a share and an optional property, such as canary:10%, \
                 canary:2.5%:client or canary:10%:rack",
                text.chars().take(60).collect::<String>()
            )
        };
        let mut parts = text.split(':');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("off"), None, ..) => Ok(Mode::Off),
            (Some("shadow"), None, ..) => Ok(Mode::Shadow),
            (Some("on"), None, ..) => Ok(Mode::On),
            (Some("canary"), Some(share), by, None) => {
                let by = match by {
                    None | Some("request") => CanaryBy::Request,
                    Some("client") => CanaryBy::Client,
                    Some("rack") => CanaryBy::Rack,
                    Some(_) => return Err(wrong()),
                };
                Ok(Mode::Canary(Canary { share: parse_share(share).ok_or_else(wrong)?, by }))
            }
            _ => Err(wrong()),
        }
    }
}

/// A share above 0 % and below 100 %, in hundredths of a percent.
fn parse_share(text: &str) -> Option<u16> {
    let (whole, part) = match text.strip_suffix('%')?.split_once('.') {
        Some((whole, part)) => (whole, part),
        None => (text.strip_suffix('%')?, ""),
    };
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 2 || part.len() > 2 || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let share = whole.parse::<u16>().ok()? * 100 + format!("{part:0<2}").parse::<u16>().ok()?;
    (share > 0).then_some(share)
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mode, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Mode {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Mode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Who decides: `off` (the default policy), `shadow` (the default policy, with Leeward's choice \
                            beside it), `canary:SHARE` or `canary:SHARE:PROPERTY` (Leeward for a share of requests, by the \
                            hash of `request`, `client` or `rack`), or `on` (Leeward).",
            "pattern": "^(off|shadow|on|canary:([1-9][0-9]?(\\.[0-9]{1,2})?|0?0\\.([1-9][0-9]?|0[1-9])|0[1-9](\\.[0-9]{1,2})?)%(:(request|client|rack))?)$",
        })
    }
}

/// Mode of each kind of decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Modes {
    /// Placement of the copies of blocks.
    pub replicas: Mode,
    /// Placement of tasks.
    pub tasks: Mode,
    /// Moves of tasks from hot racks. `off` advises no move, and `shadow` records moves without advising them.
    pub moves: Mode,
    /// Admission of workloads whose volumes have a host.
    pub workload: Mode,
    /// Placement of volumes.
    pub volumes: Mode,
}

impl Modes {
    /// The kinds of decisions, in the order of the fields.
    pub const KINDS: [&'static str; 5] = ["replicas", "tasks", "moves", "workload", "volumes"];

    /// The same mode for all kinds.
    pub fn all(mode: Mode) -> Modes {
        Modes { replicas: mode, tasks: mode, moves: mode, workload: mode, volumes: mode }
    }

    /// Modes with their kinds, in the order of [`Modes::KINDS`].
    pub fn by_kind(&self) -> [(&'static str, Mode); 5] {
        let Modes { replicas, tasks, moves, workload, volumes } = *self;
        let [a, b, c, d, e] = Modes::KINDS;
        [(a, replicas), (b, tasks), (c, moves), (d, workload), (e, volumes)]
    }

    /// Checks that requests of each kind have the property by which its canary draws them.
    ///
    /// # Errors
    /// The kind with the reason.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        for (kind, mode) in self.by_kind() {
            let Mode::Canary(Canary { by, .. }) = mode else { continue };
            let properties: &[CanaryBy] = match kind {
                "moves" => &[CanaryBy::Rack],
                "replicas" => &[CanaryBy::Request, CanaryBy::Client, CanaryBy::Rack],
                _ => &[CanaryBy::Request, CanaryBy::Client],
            };
            if !properties.contains(&by) {
                let words: Vec<&str> = properties.iter().map(|property| property.word()).collect();
                let expected = words.join(" or ");
                return Err((kind, format!("`{mode}`: a canary of {kind} is drawn by {expected}")));
            }
        }
        Ok(())
    }

    /// Kinds whose mode differs, with the mode here and there.
    pub fn differences(&self, other: &Modes) -> Vec<(&'static str, Mode, Mode)> {
        let pairs = self.by_kind().into_iter().zip(other.by_kind());
        let pairs = pairs.filter(|((_, here), (_, there))| here != there);
        pairs.map(|((kind, here), (_, there))| (kind, here, there)).collect()
    }
}

/// Modes in force, and their last change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ModesState {
    /// Modes that were set last.
    pub modes: Modes,
    /// Modes of the settings file at that time. A file with other modes takes effect at the next start or reload.
    pub file: Modes,
    /// Time of the change, in nanoseconds.
    pub at: u64,
    /// Source of the change: `settings`, or the name of a token or an address.
    pub by: String,
    /// Reason, in the words of the caller.
    #[serde(default)]
    pub reason: Option<String>,
}

impl ModesState {
    /// Modes of the settings file, as they are before any other change.
    pub fn of_file(file: Modes, at: Nanos) -> ModesState {
        ModesState { modes: file, file, at: at.0, by: "settings".to_owned(), reason: None }
    }

    /// The state after a start or a reload with these modes in the settings file. Modes that were set through the API
    /// stay until the modes of the file change.
    pub fn with_file(self, file: Modes, at: Nanos) -> ModesState {
        if self.file == file { self } else { ModesState::of_file(file, at) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A share that takes in everything.
    const WHOLE: u16 = 10_000;

    fn any_mode() -> impl Strategy<Value = Mode> {
        let by = prop_oneof![Just(CanaryBy::Request), Just(CanaryBy::Client), Just(CanaryBy::Rack)];
        prop_oneof![
            Just(Mode::Off),
            Just(Mode::Shadow),
            Just(Mode::On),
            (1..WHOLE, by).prop_map(|(share, by)| Mode::Canary(Canary { share, by })),
        ]
    }

    proptest! {
        #[test]
        fn a_mode_is_read_back_from_its_text(mode in any_mode()) {
            prop_assert_eq!(mode.to_string().parse(), Ok(mode));
        }

        #[test]
        fn no_text_panics(text in "(canary:)?[0-9.%a-z:]{0,12}") {
            if let Ok(mode) = text.parse::<Mode>() {
                prop_assert_eq!(mode.to_string().parse(), Ok(mode));
            }
        }

        #[test]
        fn a_larger_canary_contains_a_smaller_one(value in any::<[u8; 8]>(), small in 1..WHOLE, more in 1..WHOLE) {
            let of = |share: u16| Canary { share: share.min(WHOLE - 1), by: CanaryBy::Request };
            if of(small).takes(&value) {
                prop_assert!(of(small.saturating_add(more)).takes(&value));
            }
        }
    }

    #[test]
    fn a_canary_takes_its_share_of_the_requests() {
        for share in [100, 1_000, 5_000] {
            let canary = Canary { share, by: CanaryBy::Request };
            let taken = (0_u64..100_000).filter(|id| canary.takes(&id.to_le_bytes())).count();
            let expected = 10 * usize::from(share);
            assert!(taken.abs_diff(expected) < expected / 10 + 100, "{taken} of {expected}");
        }
    }

    #[test]
    fn wrong_modes_are_errors_that_name_the_right_ones() {
        for text in
            ["", "of", "on:1", "canary", "canary:", "canary:0%", "canary:100%", "canary:5", "canary:5%:host"]
        {
            let error = text.parse::<Mode>().expect_err(text);
            assert!(error.contains("canary:10%:rack"), "{error}");
        }
        for (text, shown) in [("canary:05.50%", "canary:5.5%"), ("canary:0.01%:rack", "canary:0.01%:rack")] {
            assert_eq!(text.parse::<Mode>().map(|mode| mode.to_string()), Ok(shown.to_owned()));
        }
    }

    #[test]
    fn a_canary_is_drawn_by_a_property_that_its_requests_have() {
        let canary = |by| Mode::Canary(Canary { share: 1_000, by });
        let modes = |replicas, tasks, moves| Modes { replicas, tasks, moves, ..Modes::default() };
        use CanaryBy::{Client, Rack, Request};
        assert_eq!(modes(canary(Rack), canary(Client), canary(Rack)).check(), Ok(()));
        for wrong in [modes(Mode::On, canary(Rack), Mode::On), modes(Mode::On, Mode::On, canary(Request))] {
            assert!(wrong.check().is_err_and(|(_, reason)| reason.contains("is drawn by")));
        }
    }

    #[test]
    fn modes_set_by_a_caller_stay_until_the_file_changes() {
        let file = Modes::all(Mode::Shadow);
        let set =
            ModesState { modes: Modes::all(Mode::Off), file, at: 1, by: "eve".to_owned(), reason: None };
        assert_eq!(set.clone().with_file(file, Nanos(2)), set);
        let new = set.with_file(Modes::all(Mode::On), Nanos(2));
        assert_eq!((new.modes, new.by.as_str(), new.at), (Modes::all(Mode::On), "settings", 2));
    }
}
