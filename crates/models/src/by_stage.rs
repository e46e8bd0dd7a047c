//! Values by stage, token buckets, and shares in percent, as SLO files have them.

use std::fmt;

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::input::excerpt;
use leeward_fabric::{Bandwidth, Bytes, Nanos};
use leeward_traces::Stage;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};

/// A share, written in percent: `10%` is 0.1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Share(pub f64);

const SHARE: &str = "a share in percent, such as 10%";

impl Share {
    fn parse(text: &str) -> Result<Share, String> {
        let message = || format!("`{}`: expected {SHARE}", excerpt(text));
        let number = text.trim().strip_suffix('%').ok_or_else(message)?.trim();
        let percent: f64 = number.parse().map_err(|_| message())?;
        if !(0.0..=1e9).contains(&percent) {
            return Err(format!("`{}`: expected a share from 0% to 1e9%", excerpt(text)));
        }
        Ok(Share(percent / 100.0))
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Share;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(SHARE)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Share, E> {
                Share::parse(text).map_err(E::custom)
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Share, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Share, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Share, E> {
                self.visit_str(&number.to_string())
            }
        }

        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for Share {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Share".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let pattern = r"^ *([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *% *$";
        json_schema!({ "type": "string", "description": SHARE, "pattern": pattern })
    }
}

/// A value for each stage.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    bound(deserialize = "N: Deserialize<'de>, S: Deserialize<'de>")
)]
pub struct ByStage<N, S = N> {
    /// From the client to the server.
    pub network_in: Option<N>,
    /// At the device.
    pub storage: Option<S>,
    /// From the server to the client.
    pub network_out: Option<N>,
}

/// Token buckets by stage.
pub type BucketsFile = ByStage<Vec<LinkBucket>, Vec<DeviceBucket>>;

/// A token bucket in bytes.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkBucket {
    /// Long-run rate.
    pub rate: Bandwidth,
    /// Burst.
    pub burst: Bytes,
}

/// A token bucket in seconds of service.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceBucket {
    /// Long-run rate, as a share of the device.
    pub rate: Share,
    /// Burst, as time of the device's service.
    pub burst: Nanos,
}

impl BucketsFile {
    /// Arrival curves by stage, in bytes or seconds; `None` for a list without buckets.
    pub fn curves(&self) -> Vec<(Stage, Option<ArrivalCurve>)> {
        // Units are finite and not negative.
        let link =
            |bucket: &LinkBucket| TokenBucket::new(bucket.rate.bytes_per_second(), bucket.burst.0 as f64);
        let device = |bucket: &DeviceBucket| TokenBucket::new(bucket.rate.0, bucket.burst.as_secs_f64());
        let curve = |buckets: Vec<TokenBucket>| ArrivalCurve::new(&buckets);
        let links = |buckets: &Vec<LinkBucket>| {
            curve(buckets.iter().filter_map(|bucket| link(bucket).ok()).collect())
        };
        let devices = |buckets: &Vec<DeviceBucket>| {
            curve(buckets.iter().filter_map(|bucket| device(bucket).ok()).collect())
        };
        let stages = [
            (Stage::NetworkIn, self.network_in.as_ref().map(links)),
            (Stage::Storage, self.storage.as_ref().map(devices)),
            (Stage::NetworkOut, self.network_out.as_ref().map(links)),
        ];
        stages.into_iter().filter_map(|(stage, curve)| Some((stage, curve?))).collect()
    }
}

impl<N: Copy> ByStage<N> {
    /// Value of a stage.
    pub fn at(&self, stage: Stage) -> Option<N> {
        match stage {
            Stage::NetworkIn => self.network_in,
            Stage::Storage => self.storage,
            Stage::NetworkOut => self.network_out,
        }
    }
}
