"""What the settings of every method are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from fedsynth.agreed import Agreed
from fedsynth.errors import ConfigError, FedsynthError
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema


class MethodSettings(Agreed):
    """How a method models and learns; subclasses add fields, each with a description.

    Attributes:
        method: its name.
    """

    fault: ClassVar[type[FedsynthError]] = ConfigError
    method: ClassVar[str]

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return f"settings of {cls.method}"

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> Self:
        """All defaults filled in.

        Raises:
            ConfigError: settings that contradict the schema, the unit or the trust.
        """
        return self

    def map_paths(self, change: Callable[[str], str]) -> Self:
        """A copy with ``change`` applied to every path."""
        return self
