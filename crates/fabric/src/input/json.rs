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
    use serde::Deserialize;
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
    }

    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Near,
        Far,
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
                "v: items[0].kind: `middle`: expected one of near, far",
            ),
            (
                json!({ "items": [{ "name": "a", "kind": 3 }] }),
                "v: items[0].kind: `3`: expected one of near, far",
            ),
            (
                json!({ "items": [{ "name": "a", "colour": "red" }] }),
                "v: items[0].colour: unknown field; expected one of name, size, kind, tags",
            ),
            (
                json!({ "items": [{ "name": "a", "tags": ["b", []] }] }),
                "v: items[0].tags[1]: a list: expected a text",
            ),
            (json!([]), "v: a list: expected fields, such as `name: value`"),
        ];
        for (value, message) in cases {
            let error = read_json::<List>("v", &value).expect_err(message);
            assert_eq!(error.to_string(), message);
        }
    }
}
