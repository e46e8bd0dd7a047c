//! Tokens: who has one may do what its role says. The file has only what they hash to, so who reads it has none.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

use leeward_fabric::input::{InputError, excerpt, read_text};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

use super::Role;

/// Random bytes of a token: nobody guesses 256 bits, so no slow hash is needed.
const BYTES: usize = 32;
/// What tokens begin with, so that people and scanners know one when they see it.
const BEGINNING: &str = "leeward_";
/// Bytes of the longest name.
const LONGEST_NAME: usize = 64;

/// Somebody who may ask.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    /// What people call it.
    pub name: Arc<str>,
    /// What it may.
    pub role: Role,
    hash: [u8; BYTES],
}

/// All tokens that there are.
pub struct Tokens(Vec<Token>);

/// A token that was made now; nobody can read it later.
pub struct NewToken {
    /// The token.
    pub token: String,
    /// Its line for the file of tokens.
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
    let right = |letter: char| letter.is_ascii_alphanumeric() || "-_.@".contains(letter);
    if (1..=LONGEST_NAME).contains(&name.len()) && name.chars().all(right) {
        return Ok(());
    }
    let expected = format!("a name of 1 to {LONGEST_NAME} letters, digits and -_.@");
    Err(format!("`{}`: expected {expected}", excerpt(name)))
}

impl NewToken {
    /// Makes a token.
    ///
    /// # Errors
    /// The name is none, or the system gives no random numbers.
    pub fn make(name: &str, role: Role) -> Result<NewToken, String> {
        check_name(name)?;
        let mut bytes = [0; BYTES];
        let random = SystemRandom::new().fill(&mut bytes);
        random.map_err(|_| "the system gives no random numbers".to_owned())?;
        let token = format!("{BEGINNING}{}", hex(&bytes));
        let line = format!("{name} {} {}", role.name(), hex(&hash(&token)));
        Ok(NewToken { token, line })
    }

    /// Adds its line to a file, which is made if there is none, for its owner alone.
    ///
    /// # Errors
    /// The file is wrong, has one of this name already, or cannot be written.
    pub fn add(&self, file: &str) -> Result<(), InputError> {
        let before = if Path::new(file).exists() { read_text(file)? } else { String::new() };
        let joint = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        let after = format!("{joint}{}\n", self.line);
        Tokens::from_text(file, &format!("{before}{after}"))?;
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(file);
        let written = opened.and_then(|mut opened| opened.write_all(after.as_bytes()));
        written.map_err(|error| InputError::new(file, error))
    }
}

impl Tokens {
    /// Reads a file of lines `name role sha256`; what follows `#` is a remark.
    ///
    /// # Errors
    /// An [`InputError`] with the line. It never repeats what stands there in the place of the hash: it may be a token.
    pub fn from_text(file: &str, text: &str) -> Result<Tokens, InputError> {
        let mut tokens: Vec<Token> = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let wrong = |message: String| InputError::new(file, message).at_line(at as u64 + 1);
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let (name, role, hashed) = match words[..] {
                [] => continue,
                [name, role, hash] => (name, role, hash),
                _ => {
                    let message = "expected `name role sha256`, as `leeward token new` prints it";
                    return Err(wrong(message.to_owned()));
                }
            };
            check_name(name).map_err(|message| wrong(message).in_field("name"))?;
            let role = role.parse().map_err(|message| wrong(message).in_field("role"))?;
            let Some(hash) = unhex(hashed) else {
                let message =
                    "expected the 64 hexadecimal digits of a SHA-256; a token itself does not belong here";
                return Err(wrong(message.to_owned()).in_field("sha256"));
            };
            if tokens.iter().any(|token| *token.name == *name) {
                return Err(wrong(format!("`{name}`: there is one of this name already")).in_field("name"));
            }
            tokens.push(Token { name: name.into(), role, hash });
        }
        Ok(Tokens(tokens))
    }

    /// The one that this is. How long that takes does not tell how much of it is right.
    pub fn find(&self, token: &str) -> Option<&Token> {
        let hash = hash(token);
        let mut found = None;
        for one in &self.0 {
            if bool::from(one.hash.ct_eq(&hash)) {
                found = Some(one);
            }
        }
        found
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_that_was_made_is_found_by_its_line_alone() {
        let one = NewToken::make("namenode", Role::Place).expect("randomness");
        let other = NewToken::make("page", Role::Read).expect("randomness");
        let file = format!("# who may\n\n{}\n{} # the page\n", one.line, other.line);
        let tokens = Tokens::from_text("tokens", &file).expect("lines that were made");
        let found = tokens.find(&one.token).expect("it is there");
        assert_eq!((&*found.name, found.role), ("namenode", Role::Place));
        assert_eq!(tokens.find(&other.token).map(|found| found.role), Some(Role::Read));
        assert!(tokens.find(&one.line).is_none() && tokens.find("").is_none());
        assert!(!file.contains(&one.token));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_by_line_and_never_repeats_a_token() {
        let token = NewToken::make("a", Role::Read).expect("randomness").token;
        let cases = [
            (format!("a read {token}"), "sha256"),
            (format!("a write {}", "0".repeat(64)), "role"),
            (format!("a/b read {}", "0".repeat(64)), "name"),
            (format!("a read {0}\na read {0}", "0".repeat(64)), "name"),
        ];
        for (text, field) in cases {
            let error = Tokens::from_text("tokens", &text).err().expect("it is wrong");
            assert_eq!(error.field.as_deref(), Some(field), "{error}");
            assert_eq!(error.line, Some(text.lines().count() as u64));
            assert!(!error.to_string().contains(&token), "{error}");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("tokens").display().to_string();
        let made = NewToken::make("a", Role::Read).expect("randomness");
        assert!(
            made.add(&file).is_ok()
                && NewToken::make("b", Role::Admin).expect("randomness").add(&file).is_ok()
        );
        assert!(made.add(&file).is_err_and(|error| error.line == Some(3)), "the name is taken");
        assert_eq!(Tokens::from_text(&file, &read_text(&file).expect("a file")).expect("right").count(), 2);
        assert!(Tokens::from_text("tokens", &token).is_err_and(|error| !error.to_string().contains(&token)));
    }
}
