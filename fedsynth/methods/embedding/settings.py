"""The settings of the mean embedding, with defaults by what is protected and what is made."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar

from pydantic import Field

from fedsynth.errors import ConfigError
from fedsynth.methods.settings import MethodSettings
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions

Share = Annotated[float, Field(ge=0, lt=1, description="a share from 0 to below 1")]
Count = Annotated[int, Field(ge=1, description="a whole number of at least 1")]
Positive = Annotated[float, Field(gt=0, description="a positive number")]


class MeanEmbeddingSettings(MethodSettings):
    """What of a record is summed, and how the generator learns from the sum.

    All of it is public and fixed before any record is seen. The defaults for images were chosen on
    a validation part of MNIST's training images at epsilon 1, those for tables on one split of
    Epilepsy.

    Attributes:
        components: coordinates of a record whose second moments are asked a class: lowest
            frequencies of an image, or random directions of a table's coordinates.
        upright: whether images are sheared upright before that (they are by default); how far each
            leaned is a coordinate more, and drawn images are held against the released moments.
        tilt: exponent by which an image's higher frequencies are raised before that.
        constant_share: of a record's second moments, what says that there is a record: class counts
            and first moments come from it.
        random_features: random Fourier features a class, half of them cosines.
        bandwidths: of their Gaussian kernels, as shares of the root of the number of coordinates.
        patch: side in pixels of the patches of an image whose random features are averaged over
            all places and classes; 0 for none.
        patch_features: how many of those.
        patch_bandwidth: of their kernel, as a share of the root of a patch's pixels.
        moments_share, patch_share: of a record's squared norm; random features have the rest.
        clip: bound on the L2 norm of a unit's contribution. A record has norm 1; a client's mean
            over its records is smaller where it has several classes.
        hidden: width of the generator's two dense layers.
        channels: of the convolutions that refine an image; 0 for none.
        steps, batch, learning_rate: of the generator's training by Adam, which is free; the batch
            is of all classes together.
        average: decay of the moving average of the weights that is kept.
    """

    method: ClassVar[str] = "mean-embedding"

    components: Annotated[int | None, Field(ge=1, description="a whole number of at least 1")] = (
        None
    )
    upright: Annotated[bool | None, Field(description="true or false")] = None
    tilt: Annotated[float, Field(ge=0, le=4, description="a number from 0 to 4")] = 0.75
    constant_share: Annotated[float, Field(gt=0, lt=1, description="a share in (0, 1)")] = 0.1
    random_features: Annotated[int, Field(ge=2, description="a whole number of at least 2")] = 1000
    bandwidths: Annotated[
        tuple[Positive, ...] | None, Field(min_length=1, description="a list of positive numbers")
    ] = None
    patch: Annotated[int, Field(ge=0, description="a whole number of at least 0")] = 5
    patch_features: Annotated[int, Field(ge=2, description="a whole number of at least 2")] = 200
    patch_bandwidth: Positive = 0.3
    moments_share: Share = 0.7
    patch_share: Share = 0.1
    clip: Annotated[float | None, Field(gt=0, description="a positive number")] = None
    hidden: Count = 256
    channels: Annotated[int, Field(ge=0, description="a whole number of at least 0")] = 8
    steps: Annotated[int, Field(ge=0, description="a whole number of at least 0")] = 800
    batch: Count = 200
    learning_rate: Positive = 2e-3
    average: Share = 0.98

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> MeanEmbeddingSettings:
        """All defaults filled in.

        Raises:
            ConfigError: shares that leave nothing to the random features.
        """
        changes: dict[str, Any] = {}
        images = isinstance(schema, ImageSchema)
        if not images or self.upright is None:
            changes["upright"] = images
        if self.components is None:
            # Few clients tell little: noise drowns the moments of many coordinates.
            changes["components"] = (120 if images else 128) if budget.protects.per_record else 40
        if self.bandwidths is None:
            changes["bandwidths"] = (0.18, 0.36) if images else (0.01, 0.03, 0.1, 0.3)
        if self.clip is None:
            # A client with all classes alike sends 1/C in each of C blocks.
            blocks = max(1, conditions(schema)) if not budget.protects.per_record else 1
            changes["clip"] = 1 / math.sqrt(blocks)
        if not isinstance(schema, ImageSchema) or min(schema.shape[:2]) < 2 * self.patch:
            changes.update(patch=0, patch_share=0.0)
        elif self.patch == 0:
            changes["patch_share"] = 0.0
        full = self.model_copy(update=changes)
        if full.moments_share + full.patch_share >= 1 or full.moments_share == 0:
            raise ConfigError(
                "mean-embedding: moments_share must be positive, and moments_share and "
                f"patch_share ({full.moments_share} + {full.patch_share}) must leave random "
                "features something below 1"
            )
        return full
