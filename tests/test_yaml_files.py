from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ConfigError
from fedsynth.yaml_files import read_yaml, write_yaml

_scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
)
_contents = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner)
)


@given(st.dictionaries(st.text(min_size=1, max_size=5), _contents, max_size=4))
@settings(max_examples=80, deadline=None)
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
