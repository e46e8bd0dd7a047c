//! YAML texts with their values or errors, compared with the values of a library.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(text: &str) -> Result<Value, String> {
    read_yaml("t", text).map_err(|error| error.to_string())
}

/// Reads a text with a library's typed reader, by the same rules.
fn library(text: &str) -> Option<Value> {
    let options =
        serde_saphyr::options! { non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString };
    serde_saphyr::from_str_with_options(text, options).ok()
}

#[test]
fn yaml_is_read_by_the_rules_of_its_specification() {
    let rows = [
        ("{a: &x [1, 2], b: *x}", json!({ "a": [1, 2], "b": [1, 2] })),
        (
            "a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}\n",
            json!({ "a": { "k": 1, "l": 2 }, "b": { "k": 1, "l": 3 } }),
        ),
        (
            "a: &x {k: 1}\nb: &y {k: 2, l: 2}\nc:\n  <<: [*x, *y]\n",
            json!({ "a": { "k": 1 }, "b": { "k": 2, "l": 2 }, "c": { "k": 1, "l": 2 } }),
        ),
        ("a: 1\n<<:\n", json!({ "a": 1 })),
        ("a: &x {k: 1}\nb: {<<: [~, *x], l: 2}\n", json!({ "a": { "k": 1 }, "b": { "k": 1, "l": 2 } })),
        ("{a: !!str 7, b: ! 8, c: '9', d: !!null x}", json!({ "a": "7", "b": "8", "c": "9", "d": null })),
        ("[!!int '7', !!float '1.5', !!bool 'yes', !!str , !x 7]", json!([7, 1.5, true, "", 7])),
        ("a: |\n  two\n  lines\nb: >-\n  one\n  line\n", json!({ "a": "two\nlines\n", "b": "one line" })),
        ("# a comment\n---\n- ~\n- null\n- ''\n-\n", json!([null, null, "", null])),
        ("{\"a\": \"\\u00e9\\n\", 7: x}", json!({ "a": "é\n", "7": "x" })),
    ];
    for (text, value) in rows {
        assert_eq!(read(text).as_ref(), Ok(&value), "{text}");
        assert_eq!(library(text), Some(value), "{text}");
    }
}

#[test]
fn an_alias_may_end_at_the_deepest_level() {
    // The last item of an anchor is lower than the anchor's other item.
    let text = format!("- &x [[1], 2]\n- &y [*x, 3]\n- {}*y{}\n", "[".repeat(60), "]".repeat(60));
    let mut value = &read(&text).expect("64 levels")[2];
    for _ in 0..60 {
        value = &value[0];
    }
    assert_eq!(value, &json!([[[1], 2], 3]));
    let text = text.replace("[*x, 3]", "[[*x], 3]");
    assert_eq!(read(&text), Err("t:3:63: nested too deeply".to_owned()));
}

#[test]
fn many_merged_fields_are_read_once() {
    let fields: Vec<String> = (0..50_000).map(|number| format!("k{number}: {number}")).collect();
    let text = format!("a: &x {{{}}}\nb: {{<<: [*x, *x], k7: x}}\n", fields.join(", "));
    let value = read(&text).expect("valid YAML");
    let merged = value["b"].as_object().expect("fields");
    assert_eq!((merged.len(), &merged["k7"], &merged["k8"]), (50_000, &json!("x"), &json!(8)));
}

#[test]
fn errors_name_place_and_field() {
    // Each anchor wraps the anchor before it in more lists.
    let wraps = |at: usize| format!("a{at}: &a{at} {}*a{}{}\n", "[".repeat(61), at - 1, "]".repeat(61));
    let wrapped: String = ["a0: &a0 [x]\n".to_owned()].into_iter().chain((1..350).map(wraps)).collect();
    let rows = [
        ("{a: 1, b: {c: 2, c: 3}}", "t:1:18: b.c: given twice"),
        ("a: [&x [*x]]", "t:1:9: a[0][0]: an alias inside its own anchor"),
        ("a: [1, *y]", "t:1:8: a: unknown alias; an alias repeats the value of an earlier anchor (`&name`)"),
        ("a: {<<: 3}", "t:1:9: a.<<: `<<` expects fields, or a list of fields"),
        ("a: {<<: ''}", "t:1:9: a.<<: `<<` expects fields, or a list of fields"),
        ("a: !!int x", "t:1:10: a: `x`: does not fit its tag `!!int`"),
        ("a: !!float ''", "t:1:12: a: ``: does not fit its tag `!!float`"),
        ("a: [!!bool 3]", "t:1:12: a[0]: `3`: does not fit its tag `!!bool`"),
        ("a: !!map x", "t:1:10: a: `x`: does not fit its tag `!!map`"),
        (&wrapped, "t:3:70: nested too deeply"),
        (&format!("a: &x [1]\nb: {}*x{}", "[".repeat(63), "]".repeat(63)), "t:2:67: nested too deeply"),
        ("? [1]\n: 2\n", "t:1:3: a list: expected a text"),
        ("a: 1\n---\nb: 2\n", "t:2:1: a second document begins here; expected one"),
    ];
    for (text, message) in rows {
        assert_eq!(read(text), Err(message.to_owned()), "{text}");
    }
    let error = read_yaml::<Vec<[u32; 2]>>("t", "- [0, 1]\n- [0, 1, 7]\n").expect_err("one item too many");
    assert_eq!(error.to_string(), "t:2:3: [1]: a list of 3: expected a list of 2");
    let error = read_yaml::<Vec<u8>>("t", "['7', !!int '7', !!str 7]").expect_err("a text");
    assert_eq!(error.to_string(), "t:1:24: [2]: `7`: expected a whole number from 0 to 255");
}

/// Values as a person may write them: plain and quoted scalars, lists and fields, in flow and in block style.
fn written() -> impl Strategy<Value = String> {
    let plain =
        "[-+]?[0-9]{1,4}(\\.[0-9]{1,2})?(e[0-9])?|[a-z]{1,6}|true|no|~|null|\\.inf|0x[0-9a-f]{2}|00[0-9]";
    let scalar = prop_oneof![plain.prop_map(|text: String| text), "'[a-z0-9 ]{0,4}'", "\"[a-z0-9]{0,4}\""];
    scalar.prop_recursive(3, 12, 3, |inner| {
        let fields = prop::collection::vec(inner.clone(), 1..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            fields.prop_map(move |values| {
                let fields: Vec<String> =
                    values.iter().enumerate().map(|(at, value)| format!("k{at}: {value}")).collect();
                format!("{{{}}}", fields.join(", "))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn a_typed_reader_gives_the_same_values(values in prop::collection::vec(written(), 1..4)) {
        let flow = format!("[{}]", values.join(", "));
        let block: String = values.iter().enumerate().map(|(at, value)| format!("k{at}: {value}\n")).collect();
        for text in [flow, block] {
            prop_assert_eq!(read(&text).ok(), library(&text), "{}", text);
        }
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "[-&*!{}\\[\\]:,?|>'\"%@#<a-c0-9 \n\t]{0,40}") {
        let _ = read(&text);
    }
}
