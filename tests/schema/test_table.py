from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from fedsynth.errors import DataError, MachineError, SchemaError
from fedsynth.schema import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    ImageSchema,
    Integer,
    Schema,
    load_schema,
)
from tests.schemas import schemas

AGE = Integer(name="age", lower=17, upper=90)
SEX = Categorical(name="sex", values=["f", "m"])


@given(schemas())
@settings(max_examples=10, deadline=None)
def test_dict_json_and_yaml_give_back_an_equal_schema(tmp_path_factory, schema):
    path = tmp_path_factory.mktemp("schema") / "schema.yaml"
    schema.save(path)
    for copy in (
        Schema.from_dict(schema.to_dict()),
        Schema.from_dict(json.loads(json.dumps(schema.to_dict()))),
        Schema.load(path),
        load_schema(path),
    ):
        assert copy == schema
        assert copy.digest == schema.digest
    types = [list(map(type, c.values)) for c in schema.columns if isinstance(c, Categorical)]
    assert types == [
        list(map(type, c.values)) for c in Schema.load(path).columns if isinstance(c, Categorical)
    ]


def test_digest_is_the_sha256_of_the_content_and_changes_with_it():
    schema = Schema(columns=[AGE, SEX])
    assert len(schema.digest) == 64
    wider = Integer(name="age", lower=17, upper=91)
    one, text = Categorical(name="sex", values=[1, 2]), Categorical(name="sex", values=["1", "2"])
    digests = {
        schema.digest,
        Schema(columns=[wider, SEX]).digest,
        Schema(columns=[SEX, AGE]).digest,
        Schema(columns=[AGE, SEX], target="sex").digest,
        Schema(columns=[AGE, one]).digest,
        Schema(columns=[AGE, text]).digest,
    }
    assert len(digests) == 6


def test_modelled_columns_leave_identifiers_out_and_keep_the_order():
    schema = Schema(columns=[Identifier(name="id"), SEX, AGE], target="sex")
    assert [column.name for column in schema.modelled] == ["sex", "age"]
    assert schema.target_column == SEX
    assert schema.column("id") == Identifier(name="id")


@pytest.mark.parametrize(
    ("target", "classes"), [("sex", 2), ("known", 2), ("age", 0), (None, 0), ("plus", 3)]
)
def test_classes_counts_the_targets_categories(target, classes):
    plus = Categorical(name="plus", values=["a", "b"], other="rest")
    schema = Schema(columns=[AGE, SEX, Boolean(name="known"), plus], target=target)
    assert schema.classes == classes


def test_names_that_differ_in_case_are_two_columns():
    names = [column.name for column in Schema(columns=[_number("PROB"), _number("Prob")]).columns]
    assert names == ["PROB", "Prob"]


def _number(name: str) -> Continuous:
    return Continuous(name=name, lower=0, upper=1, decimals=1)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Schema(columns=[]), ["columns", "list of columns"]),
        (lambda: Schema(columns=[AGE, AGE]), ["twice", "'age'"]),
        (lambda: Schema(columns=[AGE], target="agee"), ["'agee'", "did you mean 'age'"]),
        (lambda: Schema(columns=[Identifier(name="id")]), ["identifier", "nothing to learn"]),
        (lambda: Schema(columns=[AGE, Identifier(name="id")], target="id"), ["'id'", "identifier"]),
        (lambda: Schema(columns=[AGE], tarket="age"), ["'tarket'", "did you mean 'target'"]),
        (lambda: Schema(columns=[3]), ["columns", "entry 1", "3"]),
        (lambda: Schema(columns=[{"kind": "integr", "name": "age"}]), ["'age'", "'integer'"]),
        (lambda: Schema(columns=[{"name": "age"}]), ["'age'", "`kind` is needed", "integer"]),
        (
            lambda: Schema(columns=[{"kind": "integer", "name": "age", "lower": 0}]),
            ["'age'", "`upper` is needed"],
        ),
        (
            lambda: Schema(columns=[Boolean(name="y", missing=True)], target="y"),
            ["'y'", "may not be missing", "drop the rows"],
        ),
        (
            lambda: Schema(columns=[Categorical(name="c", values=["", "a"], missing=True)]),
            ["'c'", "missing_values"],
        ),
        (lambda: Schema(columns=[AGE], person="agee"), ["`person` 'agee'", "did you mean 'age'"]),
        (lambda: Schema(columns=[AGE], person="age"), ["'age'", "integer", "an identifier"]),
        (lambda: Schema(columns=[AGE], person=3), ["person", "the name of an identifier"]),
        (lambda: Schema(columns=[AGE]).column("ago"), ["'ago'", "did you mean 'age'"]),
        (lambda: Schema(columns=[AGE], missing_values="?"), ["missing_values", "list"]),
    ],
)
def test_a_contradictory_schema_is_refused_with_the_place_and_what_to_do(build, words):
    with pytest.raises(SchemaError) as error:
        build()
    for word in words:
        assert word in str(error.value)


def test_a_fault_in_a_file_names_the_file(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("columns:\n- {kind: integer, name: age, lower: 1, uper: 2}\n")
    with pytest.raises(SchemaError, match=r"s\.yaml.*'age'.*'uper'; did you mean 'upper'"):
        Schema.load(path)


def test_a_schema_of_the_other_kind_is_refused(tmp_path):
    path = tmp_path / "s.yaml"
    ImageSchema(shape=(2, 2)).save(path)
    assert load_schema(path) == ImageSchema(shape=(2, 2))
    with pytest.raises(SchemaError, match=r"s\.yaml.*'image'.*'table'"):
        Schema.load(path)
    path.write_text("kind: graph\n")
    with pytest.raises(SchemaError, match="unknown kind 'graph'"):
        load_schema(path)


def test_image_schemas_count_pixels_and_classes_and_round_trip(tmp_path):
    digit = Categorical(name="digit", values=list(range(10)))
    schema = ImageSchema(shape=(4, 5, 3), maximum=16, target=digit, name="d")
    assert (schema.pixels, schema.classes) == (60, 10)
    assert ImageSchema(shape=(2, 2)).classes == 0
    schema.save(tmp_path / "s.yaml")
    assert ImageSchema.load(tmp_path / "s.yaml") == schema
    assert ImageSchema.from_dict(schema.to_dict()).digest == schema.digest


@pytest.mark.parametrize(
    ("values", "word"),
    [
        ({"shape": (28,)}, "shape"),
        ({"shape": (0, 3)}, "shape"),
        ({"shape": (3, 3), "maximum": 256}, "maximum"),
        ({"shape": (3, 3), "target": Categorical(name="y", values=[1], missing=True)}, "target"),
    ],
)
def test_an_impossible_image_schema_is_refused(values, word):
    with pytest.raises(SchemaError, match=word):
        ImageSchema(**values)


def test_provenance_is_declared_unless_drafted():
    assert Schema(columns=[AGE]).provenance == "declared"
    drafted = Schema.draft(pd.DataFrame({"age": [1, 2, 3]}))
    assert drafted.provenance == "private-data"
    assert Schema.from_dict(drafted.to_dict()).provenance == "private-data"


def test_numpy_values_and_bounds_are_taken_as_pythons_own():
    column = Categorical(name="c", values=np.array([1, 2]))
    assert [type(value) for value in column.values] == [int, int]
    assert Integer(name="i", lower=np.int64(1), upper=np.float64(5.0)).upper == 5
    dated = Datetime(name="t", lower=pd.Timestamp("2020-01-01"), upper="2020-02-01")
    assert dated.high == 31


@pytest.mark.parametrize("name", ["adult", "epilepsy"])
def test_the_shipped_schemas_allow_every_value_of_the_real_tables(
    name, configs, shared_data, adult_table
):
    from fedsynth.data.tables import read_table
    from fedsynth.schema.checking import check

    if name == "adult":
        table, schema = adult_table
    else:
        schema = Schema.load(configs / "schemas" / f"{name}.yaml")
        table = read_table(shared_data / name / f"{name}.csv.gz", schema)
    assert check(table, schema) == []
    assert schema.provenance == "declared"


def test_sdv_is_asked_for_when_it_is_absent(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "sdv.metadata", None)
    with pytest.raises(DataError, match=r"pip install fedsynth\[sdv\]"):
        Schema(columns=[AGE]).to_sdv()


EDITED = Schema(
    name="people",
    columns=[
        Integer(name="age", lower=17, upper=93, missing=True),
        Integer(name="work", lower=0, upper=60),
        Categorical(name="smoker", values=["no", "yes"]),
    ],
    target="smoker",
    constraints=[{"never": {"age": 17, "smoker": "yes"}}, {"ordered": ["work", "age"]}],
    provenance="private-data",
)


def test_edit_replaces_keys_of_one_column_and_nothing_else():
    edited = EDITED.edit("age", lower=0, upper=120)
    assert edited.column("age") == Integer(name="age", lower=0, upper=120, missing=True)
    assert edited.edit("age", lower=17, upper=93) == EDITED
    assert EDITED.column("age").lower == 17


def test_a_schema_without_notations_keeps_the_digest_that_it_had_before_there_were_any():
    columns = [
        Identifier(name="id", prefix="P"),
        Integer(name="i", lower=0, upper=9),
        Continuous(name="x", lower=0, upper=1, decimals=2),
        Categorical(name="c", values=["a", "b"], dtype="category"),
        Boolean(name="b"),
        Datetime(name="t", lower="2020-01-01", upper="2021-01-01", format="%d.%m.%Y"),
    ]
    dtype = columns[-1].model_copy(update={"dtype": "object"})
    schema = Schema(columns=[*columns[:-1], dtype])
    # Of the version that knew no `format` of numbers, no `zone`, `width` and `ordered`.
    assert schema.digest == "df74e82f709585f2efabfb6acb6f2f9aaad90975e3aee37e3fd4f459e9a059c6"


def test_edit_keeps_a_notation_among_numbers_and_drops_that_of_dates():
    schema = Schema(columns=[Integer(name="a", lower=0, upper=9, format="$1,234")])
    whole = schema.edit("a", kind="continuous", decimals=0).column("a")
    assert whole.format == "$1,234"
    date = {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-12-31"}
    dates = schema.edit("a", **date)
    assert dates.column("a").format is None
    spelled = dates.edit("a", format="%d.%m.%Y")
    assert spelled.edit("a", kind="integer", lower=0, upper=9).column("a").format is None


def test_edit_to_another_kind_keeps_the_keys_of_both():
    edited = EDITED.edit("work", kind="continuous", decimals=1, dtype="float32")
    assert edited.column("work") == Continuous(
        name="work", lower=0, upper=60, decimals=1, dtype="float32"
    )
    free = Schema(columns=EDITED.columns)
    assert free.edit("smoker", kind="identifier").column("smoker") == Identifier(name="smoker")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda schema: schema.edit("agee", lower=0), "did you mean 'age'"),
        (lambda schema: schema.edit("age", lower=100), "swap them"),
        (lambda schema: schema.edit("age", lowest=1), "unknown key 'lowest'"),
        (lambda schema: schema.edit("age", kind="number"), "unknown kind 'number'"),
        (lambda schema: schema.edit("age", name="years"), "`rename` changes names"),
        (lambda schema: schema.edit("age", upper=16, lower=0), "constraint 1"),
        (lambda schema: schema.edit("smoker", missing=True), "may not be missing"),
        (lambda schema: schema.drop("age"), "constraint 1 is about 'age'"),
        (lambda schema: schema.drop("x"), "'x' is not in the schema"),
        (lambda schema: schema.rename({"x": "y"}), "'x' is not in the schema"),
        (lambda schema: schema.rename({"age": "work"}), "declared twice: 'work'"),
        (lambda schema: schema.rename({"age": ""}), "`name` must be text"),
        (lambda schema: schema.with_constraint({"never": {"x": 1}}), "constraint 3: there is no"),
    ],
)
def test_a_change_that_contradicts_the_schema_is_refused(change, message):
    with pytest.raises(SchemaError, match=message):
        change(EDITED)


def test_drop_takes_columns_out_and_the_target_with_its_column():
    free = Schema(columns=EDITED.columns, target="smoker", provenance="private-data")
    dropped = free.drop("smoker", "work")
    assert dropped.columns == EDITED.columns[:1]
    assert dropped.target is None and dropped.provenance == "private-data"
    assert free.drop("age").target == "smoker"
    with pytest.raises(SchemaError, match="list of columns"):
        free.drop("age", "work", "smoker")


def test_the_person_is_part_of_what_is_agreed_and_follows_its_column(tmp_path):
    columns = [Identifier(name="key"), *EDITED.columns]
    schema, without = Schema(columns=columns, person="key"), Schema(columns=columns)
    schema.save(tmp_path / "s.yaml")
    assert "person: key" in (tmp_path / "s.yaml").read_text()
    assert Schema.load(tmp_path / "s.yaml") == schema == Schema.from_dict(schema.to_dict())
    assert schema.digest != without.digest
    assert "person" not in without.to_dict()
    assert schema.rename({"key": "patient"}).person == "patient"
    assert schema.edit("age", upper=99).person == "key"
    assert schema.drop("key").person is None
    with pytest.raises(SchemaError, match="'key' is of kind integer"):
        schema.edit("key", kind="integer", lower=0, upper=9)


def test_rename_reaches_the_target_and_constraints_and_swaps():
    renamed = EDITED.rename({"age": "years", "smoker": "smokes"})
    assert [column.name for column in renamed.columns] == ["years", "work", "smokes"]
    assert renamed.target == "smokes" and renamed.name == "people"
    assert [one.names() for one in renamed.constraints] == [("years", "smokes"), ("work", "years")]
    assert renamed.rename({"years": "age", "smokes": "smoker"}) == EDITED
    free = Schema(columns=EDITED.columns)
    swapped = free.rename({"age": "work", "work": "age"})
    assert [column.name for column in swapped.columns] == ["work", "age", "smoker"]


def test_with_constraint_adds_one_and_keeps_the_others():
    more = EDITED.with_constraint({"never": {"work": {"from": 50}, "smoker": "no"}})
    assert more.constraints[:2] == EDITED.constraints and len(more.constraints) == 3
    assert Schema.from_dict(more.to_dict()) == more


COMMENTED = """\
# agreed on 3 May
columns:
- {kind: integer, name: age, upper: 99, lower: 0, missing: false}   # years
# from the registry
- {kind: categorical, name: sex, values: [M, F]}
- {kind: boolean, name: ill}   # by the doctor
target: ill
"""


@pytest.fixture
def commented(tmp_path):
    path = tmp_path / "schema.yaml"
    path.write_text(COMMENTED)
    return path


def test_comments_order_and_defaults_of_a_file_survive_editing(commented):
    schema = Schema.load(commented)
    schema.save(commented)
    assert commented.read_text() == COMMENTED
    edited = schema.edit("age", lower=18, upper=90).rename({"sex": "gender"}).drop("ill")
    edited = edited.with_constraint({"never": {"age": {"to": 20}, "gender": "F"}})
    other = commented.with_name("other.yaml")
    for path in (other, commented):
        edited.save(path)
        assert path.read_text() == (
            "# agreed on 3 May\n"
            "columns:\n"
            "- {kind: integer, name: age, upper: 90, lower: 18, missing: false}   # years\n"
            "# from the registry\n"
            "- {kind: categorical, name: gender, values: [M, F]}\n"
            "constraints: [{never: {age: {to: 20}, gender: F}}]\n"
        )
        assert Schema.load(path) == edited
    # The first edit, made of the file as it was, loses nothing that it did not drop.
    schema.edit("age", upper=70).save(commented)
    assert commented.read_text() == COMMENTED.replace("99", "70")


def test_names_that_change_places_are_followed(commented):
    schema = Schema.load(commented).rename({"age": "sex", "sex": "age"}).rename({"age": "g"})
    schema.save(commented)
    assert Schema.load(commented) == schema
    assert "name: sex, upper: 99" in commented.read_text()
    assert "# from the registry\n- {kind: categorical, name: g," in commented.read_text()


def test_comments_are_no_part_of_a_schema(commented):
    schema = Schema.load(commented)
    plain = Schema.from_dict(schema.to_dict())
    assert schema == plain and hash(schema) == hash(plain) and schema.digest == plain.digest
    assert repr(schema) == repr(plain)
    again = pickle.loads(pickle.dumps(schema))
    assert again == schema and again.written is None and b"3 May" not in pickle.dumps(schema)


def test_comments_that_would_be_lost_are_not_overwritten(commented):
    plain = Schema.from_dict(Schema.load(commented).to_dict())
    with pytest.raises(SchemaError, match="holds the comment '# agreed on 3 May', which would be"):
        plain.save(commented)
    assert commented.read_text() == COMMENTED
    schema = Schema.load(commented)
    commented.write_text(COMMENTED + "# by another hand\n")
    with pytest.raises(SchemaError, match="'# by another hand'"):
        schema.save(commented)
    plain.save(commented, comments=False)
    assert "#" not in commented.read_text() and Schema.load(commented) == plain
    plain.save(commented)


def test_a_text_that_refers_to_itself_is_not_changed_in_place(tmp_path):
    path = tmp_path / "schema.yaml"
    text = (
        "columns:  # both\n- {kind: categorical, name: a, values: &v [x, y]}\n"
        "- {kind: categorical, name: b, values: *v}\n"
    )
    path.write_text(text)
    edited = Schema.load(path).edit("b", values=["z"])
    with pytest.raises(SchemaError, match="cannot be changed in place"):
        edited.save(path)
    assert path.read_text() == text
    path.write_text(text.replace("  # both", ""))
    edited = Schema.load(path).edit("b", values=["z"])
    edited.save(path)
    assert Schema.load(path) == edited


def test_a_folder_that_is_not_there_is_named(commented):
    with pytest.raises(MachineError, match=r"none.s.yaml: cannot be written"):
        Schema.load(commented).save(commented.parent / "none" / "s.yaml")
