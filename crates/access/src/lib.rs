//! Access control: tokens with roles, rate limits, TLS, permissions of files.

pub mod exposure;
mod loopback;
mod rates;
mod tls;
mod tokens;
mod unauthenticated;

use std::net::IpAddr;
use std::num::NonZeroU32;

use arc_swap::{ArcSwap, ArcSwapOption};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::loopback::is_loopback;
pub use self::rates::Rates;
pub use self::tls::tls_config;
pub use self::tokens::{Hosts, NewToken, Token, Tokens};
pub use self::unauthenticated::{Connection, UnauthenticatedConnections};

/// Source address of a request.
#[derive(Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Role of a token; each role includes the roles before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Reads everything.
    Read,
    /// Reports telemetry, for all hosts and links or for some hosts only.
    Report,
    /// Places and releases.
    Place,
    /// Changes the cluster and the service.
    Admin,
}

impl Role {
    /// All roles, the least powerful first.
    pub const ALL: [Role; 4] = [Role::Read, Role::Report, Role::Place, Role::Admin];

    /// Name in files and the API.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Read => "read",
            Role::Report => "report",
            Role::Place => "place",
            Role::Admin => "admin",
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        Role::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| {
            format!("`{}`: expected read, report, place or admin", leeward_fabric::input::excerpt(text))
        })
    }
}

/// Identity of a client: the name of its token, or its address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Client {
    /// Owner of the token with this name.
    Token(std::sync::Arc<str>),
    /// Client at this address, without a token.
    Address(IpAddr),
}

impl std::fmt::Display for Client {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Client::Token(name) => to.write_str(name),
            Client::Address(address) => address.fmt(to),
        }
    }
}

/// An authorized client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Principal {
    /// Identity of the client.
    pub client: Client,
    /// Hosts the client may report for; `None` for all hosts and the links of racks.
    pub hosts: Option<Hosts>,
}

/// Reason to deny a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Denied {
    /// The request has no token and needs one.
    NoToken,
    /// The token is unknown.
    Unknown,
    /// The role of the token does not suffice.
    Role {
        /// Name of the token.
        name: std::sync::Arc<str>,
        /// Role of the token.
        role: Role,
    },
    /// The client exceeds its rate limit; it may retry after this number of seconds.
    TooMany(NonZeroU32),
}

/// Tokens and rate limits. Both can change while the service runs.
pub struct Access {
    /// Accepted tokens; `None` admits every client that can connect.
    tokens: ArcSwapOption<Tokens>,
    rates: ArcSwap<Rates>,
}

impl Access {
    /// Creates access control with tokens and a rate limit per client.
    pub fn new(tokens: Option<Tokens>, requests_per_s: Option<u32>) -> Access {
        Access {
            tokens: ArcSwapOption::from_pointee(tokens),
            rates: ArcSwap::from_pointee(Rates::new(requests_per_s)),
        }
    }

    /// True if requests need a token.
    pub fn is_closed(&self) -> bool {
        self.tokens.load().is_some()
    }

    /// Accepted tokens; `None` if requests need no token.
    pub fn tokens(&self) -> Option<std::sync::Arc<Tokens>> {
        self.tokens.load_full()
    }

    /// Replaces the tokens.
    pub fn set_tokens(&self, tokens: Tokens) {
        self.tokens.store(Some(std::sync::Arc::new(tokens)));
    }

    /// Replaces the rate limit.
    pub fn set_rate(&self, requests_per_s: Option<u32>) {
        if self.rates.load().limit() != requests_per_s {
            self.rates.store(std::sync::Arc::new(Rates::new(requests_per_s)));
        }
    }

    /// Authorizes a request. `needed` is the required role, `bearer` the token of the request, and `now` a
    /// time in seconds from any start.
    ///
    /// # Errors
    /// [`Denied`] with the reason.
    pub fn admit(
        &self,
        needed: Option<Role>,
        bearer: Option<&str>,
        from: IpAddr,
        now: f64,
    ) -> Result<Principal, Denied> {
        let tokens = self.tokens.load();
        let token = match (&*tokens, bearer) {
            (Some(tokens), Some(bearer)) => Some(tokens.find(bearer)),
            _ => None,
        };
        // Unknown tokens count against the address, so guesses are rate-limited.
        let client = match &token {
            Some(Some(token)) => Client::Token(token.name.clone()),
            _ => Client::Address(from),
        };
        self.rates.load().take(&client, now).map_err(Denied::TooMany)?;
        let (Some(needed), true) = (needed, tokens.is_some()) else {
            return Ok(Principal { client, hosts: None });
        };
        match token {
            None => Err(Denied::NoToken),
            Some(None) => Err(Denied::Unknown),
            Some(Some(token)) if token.role < needed => {
                Err(Denied::Role { name: token.name.clone(), role: token.role })
            }
            Some(Some(token)) => Ok(Principal { client, hosts: token.hosts.clone() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn a_role_includes_the_lower_roles_and_no_higher_one() {
        let roles = Role::ALL;
        let new_tokens = roles.map(|role| NewToken::make(role.name(), role, &[]).expect("randomness"));
        let file: String = new_tokens.iter().map(|token| format!("{}\n", token.line)).collect();
        let tokens = Tokens::from_text("tokens", &file).expect("valid lines");
        let access = Access::new(Some(tokens), None);
        for (has, new_token) in roles.into_iter().zip(&new_tokens) {
            for needs in roles {
                let is_admitted = access.admit(Some(needs), Some(&new_token.token), HERE, 0.0).is_ok();
                assert_eq!(is_admitted, has >= needs, "{has:?} {needs:?}");
            }
        }
        assert_eq!(access.admit(Some(Role::Read), None, HERE, 0.0), Err(Denied::NoToken));
        assert_eq!(access.admit(Some(Role::Read), Some("guess"), HERE, 0.0), Err(Denied::Unknown));
        assert_eq!(
            access.admit(None, None, HERE, 0.0),
            Ok(Principal { client: Client::Address(HERE), hosts: None })
        );
    }

    #[test]
    fn without_tokens_every_client_is_admitted_until_tokens_are_set() {
        let access = Access::new(None, None);
        assert!(access.admit(Some(Role::Admin), None, HERE, 0.0).is_ok());
        access.set_tokens(Tokens::from_text("tokens", "").expect("no lines"));
        assert_eq!(access.admit(Some(Role::Read), None, HERE, 0.0), Err(Denied::NoToken));
    }
}
