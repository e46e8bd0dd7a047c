//! Files of tokens. An error never quotes the text at the place of a hash, which may be a token.
#![no_main]

use leeward_controller::Tokens;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Tokens::from_text("tokens", text) {
        Ok(tokens) => assert!(tokens.find("leeward_").is_none() && tokens.count() <= text.lines().count()),
        Err(error) => leeward_fuzz::one_line(&error),
    }
});
