"""Settings of a sweep: values that are edited in the text of a scenario."""

from typing import Any, cast

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from leeward import InputError
from leeward.sweep.settings import axes, edit, parse

TEXT = """\
# A scenario.
cluster: cluster.yaml      # where
workloads:
  - facebook:
  - swim: {file: "a, b.tsv"}   # jobs
telemetry:
  interval: 1s
  # how late
  delay: 0s

horizon: 1h
"""


@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        ("horizon", "2h", "horizon: 1h", "horizon: 2h"),
        ("telemetry.delay", "5s", "delay: 0s", "delay: 5s"),
        ("telemetry.loss", "0.1", "  interval", "  loss: 0.1\n  interval"),
        ("telemetry", "{loss: 1}", "interval: 1s\n  # how late\n  delay: 0s", "{loss: 1}"),
        ("ledger.alpha", "0.5", "cluster:", "ledger: {alpha: 0.5}\ncluster:"),
        ("workloads[0].facebook.load", "2", "facebook:", "facebook: {load: 2}"),
        ("workloads[1].swim.file", "c.tsv", '"a, b.tsv"', "c.tsv"),
        ("workloads[1].swim.keep", "0.1", "{file", "{keep: 0.1, file"),
        ("workloads[1].keep", "0.1", "swim", "keep: 0.1\n    swim"),
    ],
)
def test_an_edit_changes_only_the_value(path: str, value: str, old: str, new: str) -> None:
    assert edit(TEXT, path, value) == TEXT.replace(old, new)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_json_and_other_line_endings_are_edited(newline: str) -> None:
    text = newline.join(['{"a": {"b": 1},', ' "c": [{}]}', ""])
    assert yaml.safe_load(edit(text, "a.b", "2")) == {"a": {"b": 2}, "c": [{}]}
    assert yaml.safe_load(edit(text, "c[0].d", "2")) == {"a": {"b": 1}, "c": [{"d": 2}]}


names = st.sampled_from(["a", "b", "c", "long_name"])
leaves = st.one_of(st.integers(0, 99), st.sampled_from(["1s", "x y", "", "two\nlines\n", "é: #", None]))
trees = st.dictionaries(
    names,
    st.recursive(
        leaves,
        lambda below: st.lists(below, max_size=3) | st.dictionaries(names, below, max_size=3),
        max_leaves=9,
    ),
    min_size=1,
)


@given(trees, st.booleans(), st.data())
def test_edited_text_parses_to_the_edited_data(tree: dict[str, Any], flow: bool, data: st.DataObject) -> None:
    text = yaml.safe_dump(tree, default_flow_style=flow, allow_unicode=True, sort_keys=False)
    path, at = "", cast("Any", tree)
    while True:
        if isinstance(at, list):
            key: Any = data.draw(st.integers(0, len(at) - 1))
            path += f"[{key}]"
        else:
            key = data.draw(names)
            path += f".{key}" if path else key
        below = at[key] if isinstance(at, list) else at.get(key, 7)
        if not isinstance(below, list | dict) or not below or data.draw(st.booleans()):
            break
        at = below
    at[key] = {"new": 5}
    assert yaml.safe_load(edit(text, path, "{new: 5}")) == tree
    if below is None or isinstance(below, dict):
        at[key] = (below or {}) | {"new": 5}
        assert yaml.safe_load(edit(text, f"{path}.new", "5")) == tree


def test_a_value_repeated_by_an_alias_is_not_edited() -> None:
    with pytest.raises(InputError, match="aliases"):
        edit("a: &x {b: 1}\nc: *x\n", "c.b", "2")


def test_options_are_split_at_commas_outside_brackets_and_quotes() -> None:
    options = ["a=1,2", "b.c=[x,y],{z: 1, w: 2}", 'd="p,q",r=s']
    assert parse(options) == {"a": ["1", "2"], "b.c": ["[x,y]", "{z: 1, w: 2}"], "d": ['"p,q"', "r=s"]}


def test_settings_are_the_product_of_all_values() -> None:
    assert axes({"a": ["1", "2"], "b": [True, ["x"]]}) == [
        (("a", "1"), ("b", "true")),
        (("a", "1"), ("b", '["x"]')),
        (("a", "2"), ("b", "true")),
        (("a", "2"), ("b", '["x"]')),
    ]
    assert axes({}) == [()]


@pytest.mark.parametrize("value", ["", "a: b", "1, 2", "# no", "[1", "- a", "a\nb: c"])
def test_a_text_that_is_not_a_single_yaml_value_is_rejected(value: str) -> None:
    with pytest.raises(InputError, match="expected a word, a number"):
        axes({"a": [value]})


@pytest.mark.parametrize("path", ["", "[0]", "a..b", "a.", "a[x]", "a b", "9"])
def test_a_path_of_other_parts_than_names_and_numbers_is_rejected(path: str) -> None:
    with pytest.raises(InputError, match="expected a path"):
        axes({path: ["1"]})
