//! Tokens that are bound to hosts which the cluster does not have: what is reported with them is refused, and most often a
//! name is mistyped.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::access::{Access, Tokens};
use crate::desk::World;
use crate::office::Office;

/// How often tokens and cluster are looked at.
const TICK: Duration = Duration::from_secs(1);
/// Hosts that are told by name: all hosts of a cluster may have other names than those of tokens.
const NAMED: usize = 10;

/// What was found when tokens and cluster were last looked at.
#[derive(Default)]
struct Found {
    /// Of which tokens and which version of the cluster.
    of: Option<(Arc<Tokens>, u64)>,
    /// Hosts that the cluster does not have, each after the name of a token that is bound to it.
    strange: BTreeSet<(String, String)>,
}

/// Writes down the hosts that tokens are bound to and the cluster does not have, when the service starts, and new ones when
/// tokens or the cluster are others.
pub async fn watch_tokens(access: &Access, office: &Office) -> Infallible {
    let mut found = Found::default();
    loop {
        found.look(access.tokens(), &office.last_world());
        tokio::time::sleep(TICK).await;
    }
}

impl Found {
    fn look(&mut self, tokens: Option<Arc<Tokens>>, world: &World) {
        let Some(tokens) = tokens else { return };
        let is_known =
            |(known, version): &(Arc<Tokens>, u64)| Arc::ptr_eq(known, &tokens) && *version == world.version;
        if self.of.as_ref().is_some_and(is_known) {
            return;
        }
        let strange = tokens.bound().filter(|(_, host)| world.fabric.host(host).is_none());
        let strange = strange.map(|(name, host)| (name.to_owned(), host.to_owned())).collect();
        let mut new = BTreeSet::difference(&strange, &self.strange);
        for (name, host) in new.by_ref().take(NAMED) {
            tracing::warn!(name, host, "a token is bound to a host that the cluster does not have");
        }
        let more = new.map(|(_, host)| host).collect::<BTreeSet<_>>().len();
        if more > 0 {
            tracing::warn!(more, "tokens are bound to more hosts that the cluster does not have");
        }
        (self.of, self.strange) = (Some((tokens, world.version)), strange);
    }
}
