//! Digest of a request. A repeated request with the key of an earlier one has the same digest, and another request with
//! this key most likely has another one.
//!
//! Default values have no effect on the digest: a request may name them or not, and a later version of the program may
//! add fields.

use leeward_fabric::Nanos;
use serde_json::{Value, json};

use crate::spec::PlacementSpec;

/// Start and factor of FNV-1a with 64 bits (RFC 9923). The digest finds mistakes, and is no protection against attacks.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

impl PlacementSpec {
    /// Digest of the request with the time after which its decision expires, the client's name of the placed thing, and
    /// the hosts that the caller chose; without hosts, the policy chooses them. The names of the request must be
    /// complete: [`PlacementSpec::for_storage`] changes the digest.
    pub fn digest(&self, lasts: Option<Nanos>, reference: Option<&str>, hosts: &[String]) -> u64 {
        let (mut defaults, mut blocks_left) = (self.clone(), None);
        if let PlacementSpec::Replicas(spec) = &mut defaults {
            spec.fault_domains = Some(spec.fault_domains.unwrap_or(spec.default_fault_domains()));
            blocks_left = spec.blocks_left.filter(|&left| left != 1);
        }
        // Requests consist of texts, numbers and lists, so serialization cannot fail.
        let spec = serde_json::to_value(&defaults).unwrap_or_default();
        let mut request = json!({
            "spec": spec,
            "blocks_left": blocks_left,
            "lasts": lasts.map(|lasts| lasts.0),
            "ref": reference,
            "hosts": hosts,
        });
        remove_empty(&mut request);
        text_digest(&request.to_string())
    }
}

/// Digest of a text.
pub fn text_digest(text: &str) -> u64 {
    text.bytes().fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}

/// Removes the fields of objects that have no value.
fn remove_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(remove_empty);
            fields.retain(|_, value| match value {
                Value::Null | Value::Bool(false) => false,
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty(),
                Value::Bool(true) | Value::Number(_) | Value::String(_) => true,
            });
        }
        Value::Array(items) => items.iter_mut().for_each(remove_empty),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use crate::spec::ReplicasSpec;
    use leeward_fabric::Bytes;

    use super::*;

    fn block(change: impl FnOnce(&mut ReplicasSpec)) -> u64 {
        let mut spec = ReplicasSpec::new(Bytes(1 << 28));
        change(&mut spec);
        PlacementSpec::Replicas(spec).digest(None, None, &[])
    }

    #[test]
    fn a_named_default_is_the_same_request() {
        let plain = block(|_| {});
        assert_eq!(block(|spec| spec.fault_domains = Some(1)), plain);
        assert_eq!(block(|spec| spec.blocks_left = Some(1)), plain);
        // The digest is stored, so it must not change.
        assert_eq!(plain, 1_499_233_058_549_332_837);
    }

    #[test]
    fn every_field_changes_the_digest() {
        let names = |count: u32| (0..count).map(|host| format!("h{host}")).collect::<Vec<String>>();
        let changes: [fn(&mut ReplicasSpec); 11] = [
            |spec| spec.size = Bytes(1),
            |spec| spec.writer = Some("h0".to_owned()),
            |spec| spec.replicas = 2,
            |spec| spec.fault_domains = Some(2),
            |spec| spec.coding = "2+1".parse().ok(),
            |spec| spec.tags = vec!["ssd".to_owned()],
            |spec| spec.max_imbalance = Some(0.5),
            |spec| spec.blocks_left = Some(2),
            |spec| spec.existing = vec!["h0".to_owned()],
            |spec| spec.prefer = vec!["h0".to_owned()],
            |spec| spec.storage = Some("ssd".to_owned()),
        ];
        let mut digests: Vec<u64> = changes.into_iter().map(block).collect();
        digests.push(block(|_| {}));
        let plain = PlacementSpec::Replicas(ReplicasSpec::new(Bytes(1 << 28)));
        digests.push(plain.digest(Some(Nanos(1)), None, &[]));
        digests.push(plain.digest(None, Some("blk_1"), &[]));
        digests.extend([1, 2].map(|count| plain.digest(None, None, &names(count))));
        // Lists that are too long to store differ too.
        digests.extend([40, 41].map(|count| block(|spec| spec.exclude = names(count))));
        digests.push(block(|spec| spec.collocate = names(40)));
        let count = digests.len();
        digests.sort_unstable();
        digests.dedup();
        assert_eq!(digests.len(), count);
    }
}
