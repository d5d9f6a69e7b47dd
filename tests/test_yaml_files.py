from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ConfigError
from fedsynth.yaml_files import (
    flow_text,
    parse_value,
    parse_yaml,
    read_yaml,
    write_yaml,
    yaml_text,
)

_scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
)
_contents = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(min_size=1, max_size=5), _contents, max_size=4))
@settings(max_examples=30, deadline=None)
def test_what_is_written_reads_back_equal_in_value_and_type(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("yaml") / "file.yaml"
    write_yaml(content, path)
    assert repr(read_yaml(path, ConfigError)) == repr(content)


def test_words_stay_words_and_numbers_numbers(tmp_path):
    path = tmp_path / "file.yaml"
    path.write_text("a: [yes, no, on, NO, 12:30, 0x1f, 2020-01-01, 1_000]\nb: [1e3, -2.5E-1, 7]\n")
    content = read_yaml(path, ConfigError)
    assert content["a"] == ["yes", "no", "on", "NO", "12:30", "0x1f", "2020-01-01", "1_000"]
    assert content["b"] == [1000.0, -0.25, 7]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1, 2\nb: 3\n", "line"),
        ("a: 1\nb: 2\na: 3\n", "'a' stands twice"),
        ("- 1\n- 2\n", "name: value"),
        ("", "name: value"),
        ("a: !!python/object/apply:os.getcwd []\n", "line 1"),
    ],
)
def test_a_bad_file_is_an_error_of_the_callers_kind_that_names_it(tmp_path, text, words):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"bad\.yaml") as error:
        read_yaml(path, ConfigError)
    assert words in str(error.value)


def test_an_absent_or_binary_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"none\.yaml.*check the path"):
        read_yaml(tmp_path / "none.yaml", ConfigError)
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_yaml(tmp_path / "b.yaml", ConfigError)


@pytest.mark.parametrize("text", ["a\u202eb", "\u200d", "x\ufeff\nb", "\u2066: {"])
def test_letters_without_a_shape_are_seen_and_kept(text):
    for content in ({"a": text}, {text: 1}, {"a": [text, {"b": text}]}):
        written = yaml_text(content)
        assert all(unicodedata.category(letter) != "Cf" for letter in written)
        assert parse_yaml(written, "f", ConfigError) == content
    assert parse_value(flow_text(text)) == text


HOSTILE = {
    "a: !!int z": "z is no whole number",
    "a: !!float z": "'z' is no float",
    "a: !!bool z": "'z' is no bool",
    "a: !!timestamp 2020-01-01": "is no kind that a value here can have",
    "a: !!map x": "is no kind that a value here can have",
    "a: !!python/object:os.system x": "is no kind that a value here can have",
    "a: &c [*c]": "an alias stands for what it is in",
    "a: &c {b: *c}": "an alias stands for what it is in",
    "a: " + "9" * 301: "no whole number of at most 300 digits",
    "a: " + "9" * 5000: "no whole number of at most 300 digits",
    "- " * 100: "more than 60 deep",
    "[1]: 2": "unhashable",
}


@pytest.mark.parametrize("text", HOSTILE)
def test_what_is_no_value_of_a_file_is_told_with_its_line(text):
    with pytest.raises(ConfigError, match=f"^f: is not YAML, line 1: .*{re.escape(HOSTILE[text])}"):
        parse_yaml(text, "f", ConfigError)
    # On the command line such a text is a text.
    assert parse_value(text) == text


def test_aliases_stand_for_so_many_values_and_no_more():
    tens = "a0: &a0 [0,0,0,0,0,0,0,0,0,0]\n" + "".join(
        f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 7)
    )
    few = "".join(tens.splitlines(keepends=True)[:4])
    assert len(parse_yaml(few, "f", ConfigError)["a3"]) == 10
    with pytest.raises(ConfigError, match="more than 1,000,000 values"):
        parse_yaml(tens, "f", ConfigError)
