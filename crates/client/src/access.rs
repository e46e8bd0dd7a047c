//! Access to controllers as a user states it: URLs, a token, certificate authorities, and the DSCP of packets.

use leeward_fabric::Dscp;
use leeward_fabric::input::{InputError, excerpt, read_secret};

/// Access to controllers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// URLs of the controllers without a trailing slash, at least one.
    pub controllers: Vec<String>,
    /// Token file.
    pub token: Option<String>,
    /// File of the certificate authorities to trust for the controllers.
    pub ca: Option<String>,
    /// Mark of the packets to controllers; the system's default without one.
    pub dscp: Option<Dscp>,
}

impl Access {
    /// Validates the values of the options `--controller`, `--token-file`, `--ca` and `--dscp`, and reads the token once.
    ///
    /// # Errors
    /// An [`InputError`] with the invalid option or file. It never quotes a token.
    pub fn new(
        controllers: &[String],
        token_file: Option<String>,
        ca: Option<String>,
        dscp: Option<&str>,
    ) -> Result<Access, InputError> {
        let controllers = urls(controllers)?;
        let dscp = dscp.map(|text| {
            let invalid = |expected| InputError::new("--dscp", format!("`{}`: {expected}", excerpt(text)));
            text.parse().map_err(invalid)
        });
        if let Some(file) = &token_file {
            token(file)?;
        }
        Ok(Access { controllers, token: token_file, ca, dscp: dscp.transpose()? })
    }

    /// True if a controller has a URL of HTTPS.
    pub fn is_encrypted(&self) -> bool {
        self.controllers.iter().any(|url| url.starts_with("https://"))
    }
}

/// First line of a file with a token, valid as a header value; errors never quote it.
pub(crate) fn token(file: &str) -> Result<String, InputError> {
    let line = read_secret(file)?;
    if !line.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(InputError::new(
            file,
            "expected a line of ASCII letters, digits and punctuation, without spaces",
        ));
    }
    Ok(line)
}

/// Validates URLs and removes trailing slashes.
fn urls(given: &[String]) -> Result<Vec<String>, InputError> {
    let invalid = |message: String| InputError::new("--controller", message);
    let mut urls: Vec<String> = Vec::new();
    for text in given {
        let url = text.trim_end_matches('/');
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        let valid = rest.is_some_and(|rest| {
            let allowed = |byte: u8| byte.is_ascii_graphic() && !b"@?#\"<>\\".contains(&byte);
            !rest.is_empty() && !rest.starts_with(['/', ':']) && rest.bytes().all(allowed)
        });
        if !valid {
            let expected = "expected a URL such as https://leeward:7600";
            return Err(invalid(format!("`{}`: {expected}", excerpt(text))));
        }
        if urls.iter().any(|other| other == url) {
            return Err(invalid(format!("`{}`: given twice", excerpt(text))));
        }
        urls.push(url.to_owned());
    }
    if urls.is_empty() {
        return Err(invalid("missing; expected the URL of a controller".to_owned()));
    }
    Ok(urls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_their_option_and_never_quote_a_token() {
        let new = |urls: &[&str], token: Option<&str>, dscp: Option<&str>| {
            let urls: Vec<String> = urls.iter().map(|&url| url.to_owned()).collect();
            Access::new(&urls, token.map(str::to_owned), None, dscp)
        };
        let access = new(&["https://leeward:7600/", "http://other:7600"], None, Some("cs6")).expect("valid");
        assert_eq!(access.controllers, ["https://leeward:7600", "http://other:7600"]);
        assert!(access.is_encrypted() && !new(&["http://a"], None, None).expect("valid").is_encrypted());
        for urls in
            [&[][..], &["leeward:7600"], &["http://"], &["https://a@b\r\n"], &["http://a", "http://a/"]]
        {
            assert_eq!(new(urls, None, None).expect_err("invalid").file, "--controller", "{urls:?}");
        }
        for dscp in ["64", "fast"] {
            assert_eq!(new(&["http://a"], None, Some(dscp)).expect_err("invalid").file, "--dscp");
        }
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("token").display().to_string();
        std::fs::write(&file, "my secret\n").expect("the folder is ours");
        let error = new(&["http://a"], Some(&file), None).expect_err("a space");
        assert!(error.file == file && !error.to_string().contains("my secret"), "{error}");
    }
}
