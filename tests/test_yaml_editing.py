"""YAML changed in place: content as wanted, comments and layout where they were."""

from __future__ import annotations

import itertools

import pytest
import yaml

from fedsynth.errors import SchemaError
from fedsynth.yaml_editing import edit_yaml, find_comments
from fedsynth.yaml_files import parse_yaml, yaml_text

TEXT = """\
# Who agreed: the north and the south
columns:
# agreed on 3 May
- kind: integer   # years
  name: age
  # revised: twice
  upper: 110      # nobody is older
- {name: sex, values: [M, F], note: 'a # b'}  # at birth

- name: colour
  values:
    - red    # warm
    - blue
    # like grass
    - green
target: age
"""
OLD = {
    "columns": [
        {"kind": "integer", "name": "age", "upper": 110},
        {"name": "sex", "values": ["M", "F"], "note": "a # b"},
        {"name": "colour", "values": ["red", "blue", "green"]},
    ],
    "target": "age",
}


def edit(change, renamed=None, text=TEXT):
    """The lines that the edit takes out and puts in."""
    new = {key: [dict(one) for one in v] if key == "columns" else v for key, v in OLD.items()}
    new = change(new) or new
    edited = edit_yaml(text, OLD, new, renamed or {})
    assert parse_yaml(edited, "file", SchemaError) == new
    before, after = text.splitlines(), edited.splitlines()
    return [line for line in before if line not in after], [
        line for line in after if line not in before
    ]


def test_what_stays_keeps_every_character():
    assert edit(lambda new: None) == ([], [])


def test_a_value_changes_and_its_comment_stays():
    taken, put = edit(lambda new: new["columns"][0].update(upper=120))
    assert (taken, put) == (
        ["  upper: 110      # nobody is older"],
        ["  upper: 120      # nobody is older"],
    )


def test_a_key_that_goes_takes_its_comments_along():
    taken, put = edit(lambda new: new["columns"][0].pop("upper") and None)
    assert taken == ["  # revised: twice", "  upper: 110      # nobody is older"] and not put


def test_the_first_key_of_an_item_goes_and_the_dash_stays():
    taken, put = edit(lambda new: new["columns"][0].pop("kind") and None)
    assert taken == ["- kind: integer   # years", "  name: age"] and put == ["- name: age"]


def test_keys_are_added_behind_the_others():
    taken, put = edit(lambda new: new["columns"][0].update(lower=0, spikes=[7]))
    assert not taken and put == ["  lower: 0", "  spikes: [7]"]
    _, put = edit(lambda new: new["columns"][1].update(missing=True))
    assert put == ["- {name: sex, values: [M, F], note: 'a # b', missing: true}  # at birth"]


def test_an_item_that_goes_takes_its_comments_along_and_leaves_its_neighbours():
    taken, put = edit(lambda new: new["columns"].pop(0) and None)
    assert taken == TEXT.splitlines()[2:7] and not put
    taken, _ = edit(lambda new: new["columns"].pop(2) and None)
    assert taken == TEXT.splitlines()[9:15]


def test_items_of_a_block_come_and_go():
    taken, put = edit(lambda new: new["columns"][2].update(values=["red", "green", "a, b", "no"]))
    assert taken == ["    - blue"] and put == ["    - 'a, b'", "    - 'no'"]
    taken, put = edit(lambda new: new["columns"][2].update(values=["pink", "red", "blue"]))
    assert taken == ["    # like grass", "    - green"] and put == ["    - pink"]


def test_items_within_brackets_come_and_go():
    line = "- {name: sex, values: [M, F], note: 'a # b'}  # at birth"
    for values, shown in (
        (["F"], "[F]"),
        (["M"], "[M]"),
        (["F", "M"], None),
        (["d", "M", "F", "x"], "[d, M, F, x]"),
        (["d"], "[d]"),
    ):
        taken, put = edit(lambda new, values=values: new["columns"][1].update(values=values))
        assert taken == [line]
        if shown:
            assert put == [line.replace("[M, F]", shown)]


def test_names_change_where_they_stand():
    def change(new):
        new["columns"][0]["name"] = "years"

    taken, put = edit(change, {"age": "years"})
    assert (taken, put) == (["  name: age"], ["  name: years"])


def test_line_ends_stay_and_a_last_line_may_lack_one():
    text = TEXT.replace("\n", "\r\n")
    new = {**OLD, "provenance": "declared"}
    edited = edit_yaml(text, OLD, new, {})
    assert edited == text + "provenance: declared\r\n"
    edited = edit_yaml(TEXT.rstrip(), OLD, new, {})
    assert edited == TEXT + "provenance: declared"


@pytest.mark.parametrize("style", [True, False, None])
def test_all_subsets_of_columns_and_values_come_out_of_every_layout(style):
    """Against PyYAML's own reading of what was edited, and the one text of all that is left. All
    values where all columns are left, and some where some are."""
    text = yaml.safe_dump(OLD, default_flow_style=style, sort_keys=False)
    for kept, values in itertools.product(
        [c for n in (1, 2, 3) for c in itertools.combinations(range(3), n)],
        [list(v) for n in (1, 2, 3) for v in itertools.permutations(["red", "blue", "new"], n)],
    ):
        if len(kept) < 3 and values not in (["red"], ["new", "blue"]):
            continue
        columns = [dict(OLD["columns"][k]) for k in kept]
        if values != ["red"] and "colour" not in (column["name"] for column in columns):
            continue
        for column in columns:
            if column["name"] == "colour":
                column["values"] = values
        new = {"columns": columns, "target": "sex", "constraints": [{"never": {"age": 3}}]}
        edited = edit_yaml(text, OLD, new, {})
        assert yaml.safe_load(edited) == new
        assert parse_yaml(yaml_text(new), "", SchemaError) == new


def test_comments_are_what_stands_outside_of_values():
    assert find_comments(TEXT) == [
        "# Who agreed: the north and the south",
        "# agreed on 3 May",
        "# years",
        "# revised: twice",
        "# nobody is older",
        "# at birth",
        "# warm",
        "# like grass",
    ]
    assert find_comments("a: |\n  # text\n  more\nb: 'x # y'\nc: d#e\n") == []
    assert find_comments("# one\n---\n# two\na: [1, # three\n 2]\n# four") == [
        "# one",
        "# two",
        "# three",
        "# four",
    ]
