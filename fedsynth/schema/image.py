"""What a set of images is, agreed in public before anything private is touched."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from fedsynth.agreed import plain
from fedsynth.schema.columns import Categorical
from fedsynth.schema.documents import Document, build_column
from fedsynth.views import View


class ImageSchema(Document):
    """Images of one shape, (height, width) or (height, width, channels), and perhaps a label.

    `maximum` is the pixel value that means white: 255, or 16 for scikit-learn's digits. `person`
    names the array that says whose each image is: never learned, and never sent.
    """

    document_kind: ClassVar[Literal["table", "image"]] = "image"

    shape: Annotated[
        tuple[Annotated[int, Field(ge=1)], ...],
        BeforeValidator(plain),
        Field(min_length=2, max_length=3, description="[height, width] or with channels third"),
    ]
    maximum: Annotated[int, Field(ge=1, le=255, description="an integer from 1 to 255")] = 255
    target: Annotated[
        Categorical | None,
        BeforeValidator(build_column),
        Field(description="a categorical column"),
    ] = None

    person: Annotated[
        str | None, Field(min_length=1, description="the name of an array of keys")
    ] = None

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return f"image schema {values['name']!r}" if values.get("name") else "image schema"

    @model_validator(mode="after")
    def _check_consistency(self) -> ImageSchema:
        if self.target is not None and self.target.missing:
            raise ValueError("`target` may not be missing: drop the images without a label")
        if self.target is not None and self.target.of is not None:
            raise ValueError("`of: person` is for columns of tables: take it out of the target")
        return self

    def _view(self) -> View:
        from fedsynth.schema.showing import view_images

        return view_images(self)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able content without the keys at their defaults; `from_dict` gives back an equal."""
        content = super().to_dict()
        if self.target is not None:
            content["target"] = {"kind": "categorical", **content["target"]}
        return content

    @property
    def pixels(self) -> int:
        """Numbers in one image: height x width x channels."""
        return math.prod(self.shape)

    @property
    def classes(self) -> int:
        """Number of labels, 0 without a target."""
        return len(self.target.categories) if self.target is not None else 0
