"""What is to be classified is looked at first, for tables and images alike."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, DataError
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.schema import Categorical, ImageSchema, Integer, Schema

CLASS = Categorical(name="t", values=["x", "y"])
TABLE = Schema(columns=[Integer(name="a", lower=0, upper=9), CLASS], target="t")
PICTURES = ImageSchema(shape=(2, 3), target=CLASS)
PIXELS = np.zeros((4, 2, 3), np.uint8)


@pytest.mark.parametrize("target", ["t", "self"])
def test_labels_are_not_looked_at_and_may_be_absent(target):
    frame = pd.DataFrame({"a": [1, 2], target: ["x", "nonsense"]})
    known = Categorical(name=target, values=["x", "y"])
    schema = Schema(columns=[TABLE.columns[0], known], target=target)
    for given in (frame, frame[["a"]]):
        assert conform_unlabelled(given, schema).columns["a"].tolist() == [1, 2]
    for labels in (None, np.array([0, 1, 9, 0])):
        known = conform_unlabelled(Images(PIXELS, labels), PICTURES)
        assert known.labels is None and known.pixels is PIXELS


@pytest.mark.parametrize(
    ("data", "schema", "error", "said"),
    [
        (Images(PIXELS), TABLE, ConfigError, "describes a table, and images"),
        (pd.DataFrame({"a": [1]}), PICTURES, ConfigError, "describes images, and a table"),
        (Images(PIXELS[:, :1]), PICTURES, DataError, r"images to classify: images of \[1, 3\]"),
        (Images(PIXELS), ImageSchema(shape=(2, 3)), ConfigError, "there is no classifier"),
        (pd.DataFrame({"a": [1]}), Schema(columns=TABLE.columns), ConfigError, "no classifier"),
        (pd.DataFrame({"b": [1]}), TABLE, DataError, "'a'|a"),
    ],
)
def test_what_the_schema_does_not_fit_is_refused_in_words(data, schema, error, said):
    with pytest.raises(error, match=said):
        conform_unlabelled(data, schema)
