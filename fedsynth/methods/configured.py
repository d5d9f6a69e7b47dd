"""A method for one schema with its settings: what it is made with, for scikit-learn to read too."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel

from fedsynth.agreed import shown
from fedsynth.errors import ConfigError
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema, demand_schema


class Configured:
    """A schema and a method's settings.

    Args:
        schema: what the parties agreed on.
        settings: of the method, as its settings class or a mapping of its fields.
        overrides: fields of the settings as keywords, in place of those.

    Raises:
        ConfigError: a schema that the method is not for, or settings that are none.
    """

    name: ClassVar[str]
    settings_type: ClassVar[type[Any]]
    images: ClassVar[bool] = True
    """Whether it is for images too."""

    schema: Any
    settings: Any

    def __init__(
        self,
        schema: Schema | ImageSchema | None = None,
        settings: BaseModel | Mapping[str, Any] | None = None,
        **overrides: Any,
    ) -> None:
        # Without a default, Python would say that something is missing, and not how to come by it.
        self.schema = demand_schema(schema, self.name)
        if not self.images and isinstance(schema, ImageSchema):
            raise ConfigError(
                f"{self.name} is for tables: use mean-embedding, fedvae or fedgan for images"
            )
        self.settings = self._merge_settings(settings, overrides)

    @classmethod
    def _merge_settings(
        cls, settings: BaseModel | Mapping[str, Any] | None, overrides: Mapping[str, Any]
    ) -> Any:
        """The settings that were given, with fields as keywords in their place."""
        if isinstance(settings, BaseModel):
            settings = settings.model_dump(exclude_unset=True)
        elif not isinstance(settings, Mapping | None):
            raise ConfigError(
                f"settings of {cls.name} are a {cls.settings_type.__name__} or a mapping of its "
                f"fields, not {shown(settings)}"
            )
        given = {str(key): value for key, value in (settings or {}).items()}
        return cls.settings_type(**{**given, **overrides})

    def resolved(self, budget: Budget) -> Any:
        """The settings with all defaults filled in. Raises ConfigError where they do not fit."""
        return self.settings.resolved(budget, self.schema)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """What it was made with, by keyword: the schema and every field of the settings.

        Args:
            deep: scikit-learn's; there is nothing further down.
        """
        fields = type(self.settings).model_fields
        return {"schema": self.schema, **{name: getattr(self.settings, name) for name in fields}}

    def set_params(self, **params: Any) -> Self:
        """Change what :meth:`get_params` says, before the fit.

        Raises:
            ConfigError: a keyword that is none, a value that it cannot have, or a fit before.
        """
        vars(self).update(vars(self.__sklearn_clone__(**params)))
        return self

    def __sklearn_clone__(self, **params: Any) -> Self:
        """The same, unfitted, perhaps with other parameters: for `sklearn.base.clone`."""
        schema = params.pop("schema", self.schema)
        return type(self)(schema, self.settings, **params)

    # Type checkers are to know every name.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say what there is in place of what there is not."""
            kind = type(self).__name__
            if name.startswith("_"):
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            there = [known for known in dir(type(self)) if not known.startswith("_")]
            near = difflib.get_close_matches(name, there, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "it has fit, plan, release, .."
            raise AttributeError(f"{kind} has no {name!r}; {hint}")
