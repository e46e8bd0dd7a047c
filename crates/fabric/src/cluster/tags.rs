//! Tags and labels of hosts. A label is a tag with its key and its value.

use std::collections::BTreeMap;

use super::errors::Errors;
use crate::fabric::label_tag;
use crate::input::{InputError, Place, excerpt};

/// Largest number of tags in a cluster: the tags of a host are the bits of a 64-bit word.
const MAX_TAGS: usize = 64;

/// Bit of each label, by key.
pub(super) type Labels = BTreeMap<String, u64>;

/// Names of the tags so far; the position of a name is its bit.
#[derive(Default)]
pub(super) struct TagNames(Vec<String>);

impl TagNames {
    /// The names, in the order of their bits.
    pub fn into_names(self) -> Vec<String> {
        self.0
    }

    /// Bits of labels.
    pub fn labels(
        &mut self,
        errors: Errors<'_>,
        labels: &BTreeMap<String, String>,
        at: Place,
    ) -> Result<Labels, InputError> {
        let mut bits = Labels::new();
        for (key, value) in labels {
            if key.is_empty() || key.contains('=') {
                let message = format!("`{}`: expected a key, not empty and without `=`", excerpt(key));
                return Err(errors.at(at, "labels", message));
            }
            let bit = self.bit(&label_tag(key, value));
            bits.insert(key.clone(), bit.map_err(|message| errors.at(at, "labels", message))?);
        }
        Ok(bits)
    }

    /// Bits of tags.
    pub fn tags(&mut self, errors: Errors<'_>, tags: &[String], at: Place) -> Result<u64, InputError> {
        let bit = |tag: &String| self.bit(tag).map_err(|message| errors.at(at, "tags", message));
        tags.iter().map(bit).try_fold(0, |mask, bit| Ok(mask | bit?))
    }

    /// Bit of a tag.
    fn bit(&mut self, tag: &str) -> Result<u64, String> {
        let known = self.0.iter().position(|name| name == tag);
        let bit = known.unwrap_or(self.0.len());
        if bit == MAX_TAGS {
            return Err(format!(
                "`{}`: more than {MAX_TAGS} different tags and labels in the cluster",
                excerpt(tag)
            ));
        }
        if known.is_none() {
            self.0.push(tag.to_owned());
        }
        Ok(1 << bit)
    }
}
