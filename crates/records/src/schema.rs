//! Schemas of texts and files that their Rust types do not describe: ids, times, names, and file contents that the API
//! passes through.

use std::borrow::Cow;
use std::marker::PhantomData;

use leeward_placement::tasks::AppFile;
use leeward_slo::file::WorkloadFile;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

/// Id: a number in decimal digits.
pub struct Id;

/// A time, RFC 3339 with its zone.
pub struct Time;

/// A name chosen by a user.
pub struct Name;

/// Name of a placed thing in a client's words.
pub struct Reference;

/// Contents of a file, in the form in which the file is read, for requests and responses.
pub struct File<T>(PhantomData<T>);

/// App file without references to other files.
pub struct AppForm;

/// Workload of a workload file, without references to other files and without the fields that the decision sets.
pub struct WorkloadForm;

impl Id {
    /// Number of an id; `None` for an invalid id.
    pub fn read(text: &str) -> Option<u64> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    }
}

impl Name {
    /// Largest number of characters.
    pub const LONGEST: usize = 128;

    /// True for a text that is neither empty nor too long, and has no control characters. A control character would
    /// break lines of logs and tables, and NUL cannot be stored.
    pub fn fits(text: &str) -> bool {
        (1..=Name::LONGEST).contains(&text.chars().count()) && !text.contains(char::is_control)
    }
}

impl Reference {
    /// Largest number of characters: a path or a long name of a pod fits.
    pub const LONGEST: usize = 512;

    /// True for a text that is neither empty nor too long, and has no control characters.
    pub fn fits(text: &str) -> bool {
        (1..=Reference::LONGEST).contains(&text.chars().count()) && !text.contains(char::is_control)
    }
}

macro_rules! impl_schema {
    ($name:ident $(<$content:ident>)?, $schema_name:expr, $inline:literal, $schema:expr) => {
        impl $(<$content: JsonSchema>)? JsonSchema for $name $(<$content>)? {
            fn schema_name() -> Cow<'static, str> {
                $schema_name
            }

            fn schema_id() -> Cow<'static, str> {
                format!("{}::{}", module_path!(), Self::schema_name()).into()
            }

            fn inline_schema() -> bool {
                $inline
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

// Every number of 19 digits fits 64 bits.
impl_schema!(Id, "Id".into(), true, json_schema!({ "type": "string", "pattern": "^[0-9]{1,19}$" }));
impl_schema!(Time, "Time".into(), true, json_schema!({ "type": "string", "format": "date-time" }));
impl_schema!(
    Name,
    "Name".into(),
    true,
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": Name::LONGEST,
        "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
    })
);
impl_schema!(
    Reference,
    "Reference".into(),
    true,
    json_schema!({
        "type": "string",
        "minLength": 1,
        "maxLength": Reference::LONGEST,
        "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]*$",
    })
);
impl_schema!(File<T>, T::schema_name(), false, input_schema::<T>());
impl_schema!(AppForm, "AppForm".into(), false, {
    let mut schema = without_fields(input_schema::<AppFile>(), &["matrix"]);
    let phase = schema.pointer_mut("/properties/phases/items/properties").and_then(Value::as_object_mut);
    if let Some(fields) = phase {
        fields.remove("matrix");
    }
    schema
});
impl_schema!(WorkloadForm, "WorkloadForm".into(), false, {
    let mut schema =
        without_fields(input_schema::<WorkloadFile>(), &["trace", "volume", "priority", "limits", "over"]);
    for field in ["curves", "model"] {
        if let Some(value) = schema.pointer_mut(&format!("/properties/{field}")) {
            remove_file_name(value);
        }
    }
    if let Some(slo) = schema.pointer_mut("/properties/slo") {
        present(slo);
    }
    if let Some(name) = schema.pointer_mut("/properties/name").and_then(Value::as_object_mut) {
        name.insert("pattern".to_owned(), "^[A-Za-z0-9._-]+$".into());
        name.insert("maxLength".to_owned(), Name::LONGEST.into());
    }
    if let Some(required) = schema.pointer_mut("/required").and_then(Value::as_array_mut) {
        required.push("slo".into());
    }
    schema
});

/// Schema of a type in its input form, with all subschemas inline.
fn input_schema<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    T::json_schema(&mut settings.into_generator())
}

/// Removes fields from a schema.
fn without_fields(mut schema: Schema, fields: &[&str]) -> Schema {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !fields.contains(&name.as_str()));
    }
    schema
}

/// Removes the alternative that is a text, because the text would be a file name.
fn remove_file_name(schema: &mut Value) {
    if let Some(alternatives) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        alternatives.retain(|alternative| *alternative != json!({ "type": "string" }));
        alternatives.iter_mut().for_each(remove_file_name);
    }
}

/// Removes the alternative `null`.
pub fn present(schema: &mut Value) {
    let null = json!({ "type": "null" });
    if let Some(types) = schema.get_mut("type").and_then(Value::as_array_mut) {
        types.retain(|name| name != "null");
        if let [only] = &types[..] {
            schema["type"] = only.clone();
        }
    }
    if let Some(alternatives) = schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        alternatives.retain(|alternative| *alternative != null);
    }
    // An `anyOf` with a single alternative becomes that alternative.
    let only = match schema.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([Value::Object(only)]) => only.clone(),
        _ => return,
    };
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("anyOf");
        for (name, value) in only {
            fields.entry(name).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_only_digits() {
        assert_eq!(Id::read("007"), Some(7));
        assert_eq!(Id::read("18446744073709551615"), Some(u64::MAX));
        for text in ["", "+7", "-7", " 7", "7 ", "7.0", "٧", "18446744073709551616"] {
            assert_eq!(Id::read(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_has_no_control_characters() {
        for name in ["a", "nämenode 1", "名", &"é".repeat(Name::LONGEST)] {
            assert!(Name::fits(name), "{name}");
        }
        for name in ["", "a\nb", "\t", "\0", "a\u{7f}", "\u{85}", "\u{1b}[2J", &"é".repeat(Name::LONGEST + 1)]
        {
            assert!(!Name::fits(name), "{name:?}");
        }
    }

    #[test]
    fn request_schemas_contain_no_file_fields() {
        let has_file_fields = |schema: Schema| schema.as_value().to_string().contains("file with");
        assert!(has_file_fields(input_schema::<AppFile>()), "the schema of the file has them");
        let form = AppForm::json_schema(&mut SchemaGenerator::default());
        assert!(form.pointer("/properties/tasks").is_some() && form.pointer("/properties/matrix").is_none());
        assert!(!has_file_fields(form));
        let form = WorkloadForm::json_schema(&mut SchemaGenerator::default());
        for field in ["trace", "volume", "priority", "limits", "over"] {
            assert!(form.pointer(&format!("/properties/{field}")).is_none(), "{field}");
        }
        for field in ["curves", "model"] {
            let value = form.pointer(&format!("/properties/{field}")).expect("a field").to_string();
            assert!(!value.contains(r#"{"type":"string"}"#), "{value}");
        }
        assert_eq!(form.pointer("/required"), Some(&json!(["name", "client", "slo"])));
    }

    #[test]
    fn required_fields_are_not_nullable() {
        let cases = [
            (
                json!({ "type": ["string", "null"], "minLength": 1 }),
                json!({ "type": "string", "minLength": 1 }),
            ),
            (
                json!({ "anyOf": [{ "$ref": "#/a" }, { "type": "null" }], "description": "b" }),
                json!({ "$ref": "#/a", "description": "b" }),
            ),
            (json!({ "type": "integer" }), json!({ "type": "integer" })),
        ];
        for (mut schema, without) in cases {
            present(&mut schema);
            assert_eq!(schema, without);
        }
    }
}
