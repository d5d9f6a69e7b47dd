"""Parts of a job file: known keys, and messages that say where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from fedsynth.agreed import Agreed
from fedsynth.errors import ConfigError, FedsynthError

Text = Annotated[str | None, Field(description="a text")]
Count = Annotated[int | None, Field(ge=1, description="a whole number of at least 1")]


class Section(Agreed):
    """One part of a job file; `place` heads its messages."""

    fault: ClassVar[type[FedsynthError]] = ConfigError
    place: ClassVar[str]

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return cls.place


def section(model: type[Agreed], place: str) -> BeforeValidator:
    """Builds a part of the file here, where its place can be named."""

    def build(value: object) -> object:
        if isinstance(value, Mapping):
            return model(**{str(key): entry for key, entry in value.items()})
        if isinstance(value, model):
            return value
        raise ConfigError(f"{place}: holds no keys; expected lines like `name: value` below it")

    return BeforeValidator(build)


class Candidate(Section):
    """A method, and its settings, that may be drawn for a trial."""

    place: ClassVar[str] = "select_privately: candidates"

    method: Annotated[str, Field(description="a method's name")]
    settings: Annotated[dict[str, Any] | None, Field(description="a section")] = None


class Select(Section):
    """What is tried on private rows (:func:`fedsynth.select_privately`).

    Attributes:
        trials: how many there are on average.
        score: that decides.
    """

    place: ClassVar[str] = "select_privately"

    candidates: Annotated[
        list[Annotated[Candidate, section(Candidate, "select_privately: candidates")]],
        Field(min_length=2, description="a list of two candidates or more, such as {method: aim}"),
    ]
    trials: Annotated[float, Field(ge=1, description="a number of at least 1")] = 10.0
    score: Text = None
