//! Tokens with roles. The file contains only their hashes, so it reveals no token.

use std::collections::{BTreeSet, HashMap};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use leeward_fabric::input::{InputError, excerpt, read_text};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

use super::Role;

/// Random bytes of a token. 256 random bits cannot be guessed, so a fast hash suffices.
const BYTES: usize = 32;
/// Prefix of tokens, so that people and secret scanners recognize them.
const PREFIX: &str = "leeward_";
/// Longest name, in bytes.
const LONGEST_NAME: usize = 64;

/// A token without its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// Name of the token.
    pub name: Arc<str>,
    /// Role of the token.
    pub role: Role,
    /// Hosts that the token may report for; `None` for all.
    pub hosts: Option<Hosts>,
}

/// Names of the hosts that a token of role `report` is bound to. The token may report for no other host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hosts(Arc<BTreeSet<String>>);

/// All tokens of a file.
pub struct Tokens {
    /// Tokens in file order.
    all: Vec<Token>,
    /// Index of each token by its hash.
    by_hash: HashMap<[u8; BYTES], usize>,
}

/// A newly created token; its secret cannot be read later.
pub struct NewToken {
    /// The secret token.
    pub token: String,
    /// Line for the token file.
    pub line: String,
}

fn hash(token: &str) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    if text.len() != 2 * BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn check_name(name: &str) -> Result<(), String> {
    let is_valid = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    if (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(is_valid) {
        return Ok(());
    }
    let expected = format!("a name of 1 to {LONGEST_NAME} letters, digits and -_.@");
    Err(format!("`{}`: expected {expected}", excerpt(name)))
}

impl Hosts {
    /// Validates hosts; `None` for an empty list.
    ///
    /// # Errors
    /// A message for a role other than `report`, or for an invalid name.
    fn read(role: Role, hosts: &[&str]) -> Result<Option<Hosts>, String> {
        let Some(first) = hosts.first() else { return Ok(None) };
        if role != Role::Report {
            return Err(format!("`{}`: only a token of role report is bound to hosts", excerpt(first)));
        }
        let is_name = |letter: u8| letter.is_ascii_alphanumeric() || b"._-".contains(&letter);
        if let Some(wrong) = hosts.iter().find(|name| name.is_empty() || !name.bytes().all(is_name)) {
            let expected = "expected the name of a host: letters, digits, `.`, `_` and `-`";
            return Err(format!("`{}`: {expected}", excerpt(wrong)));
        }
        Ok(Some(Hosts(Arc::new(hosts.iter().map(|&host| host.to_owned()).collect()))))
    }

    /// True if the token is bound to this host.
    pub fn has(&self, host: &str) -> bool {
        self.0.contains(host)
    }
}

impl std::fmt::Display for Hosts {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all: Vec<&str> = self.0.iter().map(String::as_str).collect();
        to.write_str(&all.join(" "))
    }
}

impl NewToken {
    /// Creates a token, bound to hosts if the list is not empty.
    ///
    /// # Errors
    /// [`InputError`] with the option: invalid name, hosts with a wrong role or invalid names, or no random
    /// numbers from the system.
    pub fn make(name: &str, role: Role, hosts: &[&str]) -> Result<NewToken, InputError> {
        let wrong = |option: &'static str| move |message| InputError::new(option, message);
        check_name(name).map_err(wrong("--name"))?;
        let hosts = Hosts::read(role, hosts).map_err(wrong("--host"))?;
        let hosts = hosts.map(|hosts| format!(" {hosts}")).unwrap_or_default();
        let mut bytes = [0; BYTES];
        let random = SystemRandom::new().fill(&mut bytes);
        random.map_err(|_| wrong("token")("the system provides no random numbers".to_owned()))?;
        let token = format!("{PREFIX}{}", hex(&bytes));
        let line = format!("{name} {} {}{hosts}", role.name(), hex(&hash(&token)));
        Ok(NewToken { token, line })
    }

    /// Appends the token's line to a file; creates a missing file, readable by its owner only.
    ///
    /// # Errors
    /// [`InputError`] if the file is invalid, has a token of this name, or cannot be written.
    pub fn add(&self, file: &str) -> Result<(), InputError> {
        let before = if Path::new(file).exists() { read_text(file)? } else { String::new() };
        let separator = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        let after = format!("{separator}{}\n", self.line);
        Tokens::from_text(file, &format!("{before}{after}"))?;
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(file);
        let written = opened.and_then(|mut opened| opened.write_all(after.as_bytes()));
        written.map_err(|error| InputError::new(file, error))
    }
}

impl Tokens {
    /// Reads a file of lines `name role sha256 host...`; hosts are optional, and `#` starts a comment.
    ///
    /// # Errors
    /// [`InputError`] with the line. The message never repeats an invalid hash, which may be a token.
    pub fn from_text(file: &str, text: &str) -> Result<Tokens, InputError> {
        let (mut all, mut by_hash, mut names) = (Vec::new(), HashMap::new(), BTreeSet::new());
        for (at, line) in text.lines().enumerate() {
            let wrong = |message: String| InputError::new(file, message).at_line(at as u64 + 1);
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, role, hashed, hosts) = match &words[..] {
                [] => continue,
                [name, role, hash, hosts @ ..] => (*name, *role, *hash, hosts),
                _ => {
                    let message = "expected `name role sha256`, and after it the hosts of a bound token, as `leeward \
                                   token new` prints it";
                    return Err(wrong(message.to_owned()));
                }
            };
            check_name(name).map_err(|message| wrong(message).in_field("name"))?;
            let role: Role = role.parse().map_err(|message| wrong(message).in_field("role"))?;
            let Some(hash) = unhex(hashed) else {
                let message = "expected the 64 hexadecimal digits of a SHA-256, and not the token itself";
                return Err(wrong(message.to_owned()).in_field("sha256"));
            };
            if !names.insert(name) {
                return Err(wrong(format!("`{name}`: another token has this name")).in_field("name"));
            }
            let hosts = Hosts::read(role, hosts).map_err(|message| wrong(message).in_field("hosts"))?;
            by_hash.insert(hash, all.len());
            all.push(Token { name: name.into(), role, hosts });
        }
        Ok(Tokens { all, by_hash })
    }

    /// Finds a token by its secret. The lookup is by hash, so its time reveals nothing about the secret: a
    /// similar hash does not mean a similar token.
    pub fn find(&self, token: &str) -> Option<&Token> {
        self.all.get(*self.by_hash.get(&hash(token))?)
    }

    /// Bound hosts, as pairs of a token's name and a host.
    pub fn bound(&self) -> impl Iterator<Item = (&str, &str)> {
        let bound = self.all.iter().filter_map(|token| Some((&*token.name, token.hosts.as_ref()?)));
        bound.flat_map(|(name, hosts)| hosts.0.iter().map(move |host| (name, host.as_str())))
    }

    /// Number of tokens.
    pub fn count(&self) -> usize {
        self.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_token_is_found_by_its_line_alone() {
        let one = NewToken::make("namenode", Role::Place, &[]).expect("randomness");
        let other = NewToken::make("page", Role::Read, &[]).expect("randomness");
        let file = format!("# clients\n\n{}\n{} # the page\n", one.line, other.line);
        let tokens = Tokens::from_text("tokens", &file).expect("valid lines");
        let found = tokens.find(&one.token).expect("the token is valid");
        assert_eq!((&*found.name, found.role), ("namenode", Role::Place));
        assert_eq!(tokens.find(&other.token).map(|found| found.role), Some(Role::Read));
        assert!(tokens.find(&one.line).is_none() && tokens.find("").is_none());
        assert!(!file.contains(&one.token));
    }

    #[test]
    fn a_host_bound_token_lists_its_hosts_in_its_line() {
        let made = NewToken::make("r0", Role::Report, &["r0h1", "r0h0", "r0h1"]).expect("randomness");
        assert!(made.line.ends_with(" r0h0 r0h1"), "{}", made.line);
        let tokens = Tokens::from_text("tokens", &format!("{} # both\n", made.line)).expect("a valid line");
        let hosts = tokens
            .find(&made.token)
            .expect("the token is valid")
            .hosts
            .clone()
            .expect("the token is bound to hosts");
        assert_eq!(
            ["r0h0", "r0h1", "r0h", "r0h10", ""].map(|host| hosts.has(host)),
            [true, true, false, false, false]
        );
        for (role, hosts) in [(Role::Place, ["r0h0"]), (Role::Admin, ["r0h0"]), (Role::Report, ["r0 h0"])] {
            assert!(NewToken::make("a", role, &hosts).is_err(), "{role:?} {hosts:?}");
        }
        assert!(
            NewToken::make("a", Role::Report, &[""]).is_err()
                && NewToken::make("a", Role::Report, &["a#"]).is_err()
        );
    }

    #[test]
    fn errors_in_a_token_file_name_the_line_and_never_the_token() {
        let token = NewToken::make("a", Role::Read, &[]).expect("randomness").token;
        let cases = [
            (format!("a read {token}"), "sha256"),
            (format!("a write {}", "0".repeat(64)), "role"),
            (format!("a/b read {}", "0".repeat(64)), "name"),
            (format!("a read {0}\na read {0}", "0".repeat(64)), "name"),
            (format!("a place {} r0h0", "0".repeat(64)), "hosts"),
        ];
        for (text, field) in cases {
            let error = Tokens::from_text("tokens", &text).err().expect("an error");
            assert_eq!(error.field.as_deref(), Some(field), "{error}");
            assert_eq!(error.line, Some(text.lines().count() as u64));
            assert!(!error.to_string().contains(&token), "{error}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("tokens").display().to_string();
        let made = NewToken::make("a", Role::Read, &[]).expect("randomness");
        assert!(
            made.add(&file).is_ok()
                && NewToken::make("b", Role::Admin, &[]).expect("randomness").add(&file).is_ok()
        );
        assert!(made.add(&file).is_err_and(|error| error.line == Some(3)), "the name is taken");
        assert_eq!(Tokens::from_text(&file, &read_text(&file).expect("a file")).expect("right").count(), 2);
        assert!(Tokens::from_text("tokens", &token).is_err_and(|error| !error.to_string().contains(&token)));
    }
}
