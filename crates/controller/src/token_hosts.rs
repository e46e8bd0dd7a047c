//! Detects tokens that are bound to hosts outside the cluster. Their reports are rejected; the usual cause is a
//! mistyped name.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use leeward_records::ClusterVersion;
use leeward_service::{Handle, NetworkSnapshot};

use leeward_access::{Access, Tokens};

/// Check interval.
const TICK: Duration = Duration::from_secs(1);
/// Largest number of hosts to log by name; the cluster and the tokens may have no host name in common.
const NAMED: usize = 10;

/// Result of the last check.
#[derive(Default)]
struct LastCheck {
    /// Tokens and cluster version that were checked.
    input: Option<(Arc<Tokens>, ClusterVersion)>,
    /// Hosts outside the cluster, each with the name of its token.
    unknown: BTreeSet<(String, String)>,
}

/// Logs hosts of tokens that the cluster does not have: at the start, and new ones after a change of tokens or cluster.
pub async fn watch_tokens(access: &Access, handle: &Handle) -> Infallible {
    let mut last = LastCheck::default();
    loop {
        last.check(access.tokens(), &handle.last_snapshot());
        tokio::time::sleep(TICK).await;
    }
}

impl LastCheck {
    fn check(&mut self, tokens: Option<Arc<Tokens>>, snapshot: &NetworkSnapshot) {
        let Some(tokens) = tokens else { return };
        let is_known = |(known, version): &(Arc<Tokens>, ClusterVersion)| {
            Arc::ptr_eq(known, &tokens) && *version == snapshot.version
        };
        if self.input.as_ref().is_some_and(is_known) {
            return;
        }
        let unknown = tokens.bound().filter(|(_, host)| snapshot.fabric.host(host).is_none());
        let unknown = unknown.map(|(name, host)| (name.to_owned(), host.to_owned())).collect();
        let mut new = BTreeSet::difference(&unknown, &self.unknown);
        for (name, host) in new.by_ref().take(NAMED) {
            tracing::warn!(name, host, "a token is bound to a host that the cluster does not have");
        }
        let more = new.map(|(_, host)| host).collect::<BTreeSet<_>>().len();
        if more > 0 {
            tracing::warn!(more, "tokens are bound to more hosts that the cluster does not have");
        }
        (self.input, self.unknown) = (Some((tokens, snapshot.version)), unknown);
    }
}
