from __future__ import annotations

import numpy as np
import pytest

from fedsynth.data.images import Images, demand_image_persons, read_images, write_images
from fedsynth.data.persons import number, people_of
from fedsynth.errors import DataError
from fedsynth.federation.simulation.partitions import partition
from fedsynth.jobs.data import split_rows
from fedsynth.schema import Categorical, ImageSchema

SCHEMA = ImageSchema(shape=(2, 3), target=Categorical(name="y", values=["cat", "dog"]))
PIXELS = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)
IMAGES = Images(PIXELS, np.array([0, 1, 1, 0]))


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize(
    ("values", "shape"), [(["cat", "dog"], (2, 3)), ([3, 5], (2, 3, 2)), ([True, False], (2, 3))]
)
def test_written_images_read_back_the_same(tmp_path, values, shape):
    schema = ImageSchema(shape=shape, target=Categorical(name="y", values=values))
    pixels = np.random.default_rng(0).integers(0, 256, (4, *shape)).astype(np.uint8)
    write_images(Images(pixels, IMAGES.labels), tmp_path / "i.npz", schema)
    copy = read_images(tmp_path / "i.npz", schema)
    np.testing.assert_array_equal(copy.pixels, pixels)
    np.testing.assert_array_equal(copy.labels, IMAGES.labels)


def test_images_without_labels_read_back_the_same(tmp_path):
    schema = ImageSchema(shape=(2, 3))
    write_images(Images(PIXELS), tmp_path / "i.npz", schema)
    assert read_images(tmp_path / "i.npz", schema).labels is None
    with pytest.raises(DataError, match="labels"):
        write_images(IMAGES, tmp_path / "i.npz", schema)


@pytest.mark.parametrize("labels", [np.array([], "U3"), np.zeros((0, 1), np.int64)])
def test_a_file_of_no_images_is_read_where_it_may_be(tmp_path, labels):
    path = save(tmp_path / "i.npz", x=PIXELS[:0], y=labels)
    copy = read_images(path, SCHEMA, empty=True)
    assert copy.pixels.shape == (0, 2, 3) and copy.labels.shape == (0,)
    with pytest.raises(DataError, match="no images"):
        read_images(path, SCHEMA)


def test_labels_of_any_type_and_shape_become_codes(tmp_path):
    schema = ImageSchema(shape=(2, 3), target=Categorical(name="y", values=[0, 7]))
    for labels in (
        np.array([0, 7, 7, 0], np.uint8),
        np.array([[0], [7], [7], [0]]),
        [0.0, 7, 7, 0],
    ):
        path = save(tmp_path / "i.npz", a=PIXELS, b=labels)
        images = read_images(path, schema, keys=("a", "b"))
        assert images.labels.tolist() == [0, 1, 1, 0]
        assert images.labels.dtype == np.int64


def test_take_keeps_pixels_and_labels_together():
    some = IMAGES.take(np.array([2, 0]))
    assert len(some) == 2
    np.testing.assert_array_equal(some.pixels, PIXELS[[2, 0]])
    assert some.labels.tolist() == [1, 0]
    assert Images(PIXELS).take(np.array([True, False, True, False])).labels is None


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": PIXELS.astype(float), "y": IMAGES.labels}, "'x' is float64; store pixels as uint8"),
        ({"x": PIXELS[:, :1], "y": IMAGES.labels}, r"'x' has shape \[4, 1, 3\].*\[n, 2, 3\]"),
        ({"x": PIXELS[..., None], "y": IMAGES.labels}, r"'x' has shape \[4, 2, 3, 1\]"),
        ({"x": PIXELS[:0], "y": IMAGES.labels[:0]}, "holds no images"),
        ({"x": PIXELS, "y": ["cat", "cow", "cow", "dog"]}, "'y' has labels that the schema"),
        ({"x": PIXELS, "y": ["cat"]}, r"'y' has shape \[1\]"),
        ({"images": PIXELS, "y": ["cat"]}, r"has no array 'x'; it has images, y"),
        ({"x": PIXELS, "y": np.array(["cat", None, "cat", "dog"], dtype=object)}, "objects"),
    ],
)
def test_a_file_of_another_content_is_refused_by_name(tmp_path, arrays, words):
    path = save(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=rf"bad\.npz.*{words}"):
        read_images(path, SCHEMA)


def test_pixels_above_the_maximum_are_refused(tmp_path):
    path = save(tmp_path / "i.npz", x=PIXELS)
    with pytest.raises(DataError, match="above the schema's `maximum` 16"):
        read_images(path, ImageSchema(shape=(2, 3), maximum=16))


def test_damaged_absent_and_other_files_are_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.npz.*No such file"):
        read_images(tmp_path / "none.npz", SCHEMA)
    path = save(tmp_path / "cut.npz", x=PIXELS, y=["cat"] * 4)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match=r"cut\.npz.*damaged"):
        read_images(path, SCHEMA)
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"cut\.npz"):
        read_images(path, SCHEMA)
    np.save(tmp_path / "one.npy", PIXELS)
    with pytest.raises(DataError, match=r"one\.npy.*\.npz"):
        read_images(tmp_path / "one.npy", SCHEMA)


@pytest.mark.parametrize(
    ("pixels", "labels"),
    [
        (PIXELS.astype(np.int64), None),
        (PIXELS[0], None),
        (PIXELS, np.array([0, 1])),
        (PIXELS, np.array([0, 1, 1, 0], np.int32)),
    ],
)
def test_arrays_of_another_type_or_shape_are_no_images(pixels, labels):
    with pytest.raises(DataError):
        Images(pixels, labels)


def test_mnist_reads_with_the_shipped_schema(configs, shared_data):
    schema = ImageSchema.load(configs / "schemas" / "mnist.yaml")
    images = read_images(shared_data / "mnist" / "mnist.npz", schema, keys=("x_test", "y_test"))
    counts = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert np.bincount(images.labels).tolist() == counts


def test_whose_an_image_is_comes_along_and_is_never_written(tmp_path):
    schema = ImageSchema(shape=(2, 3), target=SCHEMA.target, person="writer")
    labels = ["cat", "dog", "dog", "cat"]
    for keys in (["a", "b", "a", "a"], [7, 3, 7, 7], [[7], [3], [7], [7]]):
        path = save(tmp_path / "i.npz", x=PIXELS, y=labels, writer=keys)
        images = read_images(path, schema)
        assert number(images.persons).tolist() == [0, 1, 0, 0]
        assert number(images.take(np.array([1, 2])).persons).tolist() == [0, 1]
        assert people_of(images, schema, "x").tolist() == [0, 1, 0, 0]
        # Only a schema that names it has it read.
        assert read_images(path, SCHEMA).persons is None
        assert people_of(images, SCHEMA, "x").tolist() == [0, 1, 2, 3]
    write_images(images, tmp_path / "o.npz", schema)
    assert read_images(tmp_path / "o.npz", schema).persons is None
    with pytest.raises(DataError, match="whose an image is"):
        demand_image_persons(IMAGES, schema, "north")
    assert schema.from_dict(schema.to_dict()) == schema and "person" not in SCHEMA.to_dict()


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ([1, 2, 3], "array of 4 whole numbers or texts"),
        ([1.5, 2, 3, 4], "array of 4 whole numbers or texts"),
        (["a", " ", "b", "c"], "images without a person"),
    ],
)
def test_keys_that_do_not_say_whose_each_image_is_are_refused(tmp_path, keys, said):
    schema = ImageSchema(shape=(2, 3), person="writer")
    path = save(tmp_path / "i.npz", x=PIXELS, writer=keys)
    with pytest.raises(DataError, match=said):
        read_images(path, schema)
    with pytest.raises(DataError, match=said):
        Images(PIXELS, None, np.array(keys))


def test_images_are_cut_and_held_out_by_person():
    schema = ImageSchema(shape=(2, 3), person="writer")
    pixels = np.zeros((60, 2, 3), np.uint8)
    images = Images(pixels, None, np.arange(60) % 12)
    owners = partition(images, 4, "uniform", schema=schema)
    persons = [set(own.persons.tolist()) for own in owners.values()]
    assert [len(own) for own in owners.values()] == [15] * 4
    assert set.union(*persons) == set(range(12)) and sum(map(len, persons)) == 12
    kept, rest = split_rows(images, schema, "the data", 0.25, 0)
    assert not set(images.persons[kept]) & set(images.persons[rest]) and len(rest) == 15
