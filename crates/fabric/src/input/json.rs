//! Reads JSON values into the types of files, such as a cluster in the body of a request.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{InputError, reader};

/// Reads a JSON value into a `T`; errors call the value `name`. A field that expects a text accepts a number or a
/// boolean too, as in YAML: a rack may be called 7.
///
/// # Errors
///
/// Fails if the value does not describe a `T`.
pub fn read_json<T: DeserializeOwned>(name: &str, value: &Value) -> Result<T, InputError> {
    reader::read(name, &value.into())
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
    use serde::{Deserialize, Deserializer};
    use serde_json::json;

    use super::*;
    use crate::input::{Spanned, read_yaml};

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct Item {
        name: String,
        #[serde(default)]
        size: u32,
        kind: Option<Kind>,
        tags: Option<Vec<Spanned<String>>>,
        pair: Option<[u32; 2]>,
        point: Option<Point>,
    }

    #[derive(Deserialize, PartialEq, Debug)]
    struct Point(u32, u32);

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Near,
        Far,
        Between(u32, u32),
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(deny_unknown_fields)]
    struct List {
        items: Vec<Spanned<Item>>,
    }

    #[test]
    fn values_are_read_as_their_text_is_read_as_yaml() {
        let values = [
            json!({ "items": [] }),
            json!({ "items": [{ "name": "a", "size": 3, "kind": "far", "tags": null }] }),
            json!({ "items": [{ "name": "a", "pair": [1, 2], "point": [3, 4], "kind": { "between": [5, 6] } }] }),
            json!({ "items": [{ "name": "a", "kind": { "near": null } }] }),
            json!({ "items": [{ "name": 7, "tags": ["x", 8, true] }, { "name": 1.0 }, { "name": false }] }),
        ];
        for value in values {
            let items = |list: List| list.items.into_iter().map(|item| item.value.name).collect::<Vec<_>>();
            let json = read_json("v", &value).map(items);
            assert_eq!(json, read_yaml("v", &value.to_string()).map(items), "{value}");
            assert!(json.is_ok(), "{json:?}");
        }
    }

    #[test]
    fn errors_name_the_field() {
        let cases = [
            (json!({ "items": 3 }), "v: items: `3`: expected a list, such as `[a, b]`"),
            (json!({ "items": [{}] }), "v: items[0].name: missing"),
            (
                json!({ "items": [{ "name": "a" }, 3] }),
                "v: items[1]: `3`: expected fields, such as `name: value`",
            ),
            (json!({ "items": [{ "name": null }] }), "v: items[0].name: empty; expected a text"),
            (
                json!({ "items": [{ "name": "a", "size": "x" }] }),
                "v: items[0].size: `x`: expected a whole number from 0 to 4294967295",
            ),
            (
                json!({ "items": [{ "name": "a", "size": -1 }] }),
                "v: items[0].size: `-1`: expected a whole number from 0 to 4294967295",
            ),
            (
                json!({ "items": [{ "name": "a", "kind": "middle" }] }),
                "v: items[0].kind: `middle`: expected one of near, far, between",
            ),
            (
                json!({ "items": [{ "name": "a", "kind": 3 }] }),
                "v: items[0].kind: `3`: expected one of near, far, between",
            ),
            (
                json!({ "items": [{ "name": "a", "kind": { "near": null, "far": null, "other": 3 } }] }),
                "v: items[0].kind: 3 fields: expected one",
            ),
            (json!({ "items": [{ "name": "a", "kind": {} }] }), "v: items[0].kind: 0 fields: expected one"),
            (
                json!({ "items": [{ "name": "a", "colour": "red" }] }),
                "v: items[0].colour: unknown field; expected one of name, size, kind, tags, pair, point",
            ),
            (
                json!({ "items": [{ "name": "a", "tags": ["b", []] }] }),
                "v: items[0].tags[1]: a list: expected a text",
            ),
            (
                json!({ "items": [{ "name": "a", "pair": [0, 1, 7] }] }),
                "v: items[0].pair: a list of 3: expected a list of 2",
            ),
            (
                json!({ "items": [{ "name": "a", "point": [0, 1, 7, 8] }] }),
                "v: items[0].point: a list of 4: expected a list of 2",
            ),
            (
                json!({ "items": [{ "name": "a", "kind": { "between": [0, 1, 7] } }] }),
                "v: items[0].kind.between: a list of 3: expected a list of 2",
            ),
            (json!([]), "v: a list: expected fields, such as `name: value`"),
        ];
        for (value, message) in cases {
            let error = read_json::<List>("v", &value).expect_err(message);
            assert_eq!(error.to_string(), message);
        }
    }

    /// The first of several fields or items.
    #[derive(Debug)]
    struct First;

    impl<'de> Deserialize<'de> for First {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<First, D::Error> {
            deserializer.deserialize_any(First)
        }
    }

    impl<'de> Visitor<'de> for First {
        type Value = First;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list or fields")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<First, A::Error> {
            list.next_element::<u32>().map(|_| First)
        }

        fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<First, A::Error> {
            fields.next_entry::<String, u32>().map(|_| First)
        }
    }

    #[test]
    fn unread_values_are_errors() {
        let read = |value| read_json::<First>("v", &value).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(read(json!([1, 2, 3])), Err("v: a list of 3: expected a list of 1".to_owned()));
        assert_eq!(read(json!({ "a": 1, "b": 2 })), Err("v: 2 fields: expected 1".to_owned()));
        assert_eq!((read(json!([1])), read(json!({ "a": 1 }))), (Ok(()), Ok(())));
        let ignored = read_json::<IgnoredAny>("v", &json!({ "a": [1, 2] }));
        assert!(ignored.is_ok(), "{ignored:?}");
    }
}
