"""Kinds of model, the settings of each that are searched, and how much each lets a model learn.

Synthetic rows nearly always ask for more capacity than real ones do: the release's noise is one
fixed density, and a model that learns it scores. So the spaces leave out the corners that only
synthetic rows like, and of settings that score alike the most restrained are taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fedsynth.agreed import suggestion
from fedsynth.errors import ConfigError
from fedsynth.schema import Boolean, Categorical, ImageSchema
from fedsynth.schema.columns import Modelled
from fedsynth.tuning.images import flatten, shape_of
from fedsynth.tuning.rows import AnySchema, encode, features_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Settings = dict[str, Any]
Range = tuple[float, float] | tuple[float, float, str]
Choice = Range | list[Any]
"""(low, high) of whole numbers or of floats, both included; (low, high, "log"); or a list."""

_MOST_CODES = 255
"""scikit-learn's limit of categories in boosting."""


@dataclass(frozen=True)
class Space:
    """A kind of model and what of it is searched.

    Attributes:
        name: for readers.
        build: of a schema, a pipeline that takes its columns; with the default settings.
        choices: by the names that the pipeline's `set_params` takes.
        capacity: rises with how much settings let a model learn; None where nobody knows.
        pairs: of draws that every candidate is tried on. Where candidates differ little, one pair
            hardly orders them.
    """

    name: str
    build: Callable[[AnySchema, int], Any]
    choices: Mapping[str, Choice]
    capacity: Callable[[Settings], float] | None = None
    pairs: int = 1

    def distributions(self) -> dict[str, BaseDistribution]:
        """The choices as Optuna's, those of a list by their labels."""
        return {name: _distribution(name, choice) for name, choice in self.choices.items()}

    def settings_of(self, parameters: Mapping[str, Any]) -> Settings:
        """What Optuna proposed, as settings."""
        return {
            name: _labels(choice)[parameters[name]]
            if isinstance(choice, list)
            else parameters[name]
            for name, choice in self.choices.items()
        }

    def defaults(self, pipeline: Any) -> dict[str, Any] | None:
        """The pipeline's own settings as Optuna would propose them; None where it could not."""
        own = pipeline.get_params()
        found: dict[str, Any] = {}
        for name, choice in self.choices.items():
            if isinstance(choice, list):
                labels = [label for label, value in _labels(choice).items() if value == own[name]]
                if not labels:
                    return None
                found[name] = labels[0]
            elif type(own[name]) in (int, float) and choice[0] <= own[name] <= choice[1]:
                found[name] = own[name]
            else:
                return None
        return found


def short_name(setting: str) -> str:
    """A setting's name without the steps of the pipeline around its model."""
    return setting.removeprefix("model__").removeprefix("regressor__")


def default_space(schema: AnySchema) -> str:
    """The name of the space that is searched where none is named."""
    return _STUDENT.name if isinstance(schema, ImageSchema) else _SPACES[0].name


def named_space(name: str, schema: AnySchema) -> Space:
    """The space of a kind of model.

    Raises:
        ConfigError: there is none of that name for the schema's task.
    """
    kinds: tuple[Space, ...] = _CLASSIFIERS
    task = "classification"
    if not schema.classes:
        kinds, task = _REGRESSORS, "regression"
    if isinstance(schema, ImageSchema):
        kinds, task = (_STUDENT, *kinds), "images"
    spaces = {space.name: space for space in kinds}
    if name not in spaces:
        raise ConfigError(
            f"no model for {task} is called {name!r}{suggestion(name, spaces)}. Any scikit-learn "
            f"estimator will do, with a space of its own"
        )
    return spaces[name]


def own_space(estimator: Any, choices: Mapping[str, Choice], classes: int) -> Space:
    """The space of a scikit-learn estimator or pipeline that somebody brings.

    A pipeline takes the schema's columns as they are; a bare estimator gets them as numbers.
    Images: pixels uint8 [n, height, width(, channels)], or rows [n, pixels] in [0, 1].

    Args:
        classes: of the target; 0 for numbers.

    Raises:
        ConfigError: no estimator, or one of another task; no choices, or settings that it does not
            have.
    """
    from sklearn.base import clone, is_classifier, is_regressor
    from sklearn.pipeline import Pipeline

    if not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise ConfigError(
            f"a model is a name, such as 'gradient boosting', or a scikit-learn estimator or "
            f"pipeline, not {type(estimator).__name__}"
        )
    if not isinstance(choices, Mapping) or not choices:
        raise ConfigError(
            'an estimator needs a space of settings, such as {"C": (0.01, 100.0, "log")}'
        )
    fits = is_classifier(estimator) if classes else is_regressor(estimator)
    if not fits:
        task = "categories: give a classifier" if classes else "numbers: give a regressor"
        raise ConfigError(f"{type(estimator).__name__} is none for this target, of {task}")
    whole = isinstance(estimator, Pipeline)
    for name in choices:
        if name not in (known := estimator.get_params()):
            raise ConfigError(
                f"space: {type(estimator).__name__} has no setting {name!r}"
                f"{suggestion(str(name), known)}"
            )

    def build(schema: AnySchema, seed: int) -> Any:
        made = clone(estimator)
        return made if whole else Pipeline([("columns", _vectors(schema)), ("model", made)])

    within = {name if whole else f"model__{name}": choice for name, choice in choices.items()}
    space = Space(type(estimator).__name__, build, within)
    space.distributions()
    return space


def _distribution(name: str, choice: Choice) -> BaseDistribution:
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if isinstance(choice, list) and choice:
        if len(_labels(choice)) < len(choice):
            raise ConfigError(f"space: {name!r} names a value twice, or two that read alike")
        return CategoricalDistribution(list(_labels(choice)))
    if isinstance(choice, tuple) and len(choice) in (2, 3):
        low, high, *scale = choice
        log = scale == ["log"]
        ends = [type(end) in (int, float) and math.isfinite(end) for end in (low, high)]
        if all(ends) and low < high and (log or not scale) and not (log and low <= 0):
            if isinstance(low, int) and isinstance(high, int):
                return IntDistribution(low, high, log=log)
            return FloatDistribution(float(low), float(high), log=log)
    raise ConfigError(
        f"space: {name!r} is {choice!r}; give (low, high), (low, high, 'log') with 0 < low, or a "
        f"list of values"
    )


def _labels(values: list[Any]) -> dict[str, Any]:
    """Values by a text for each: what a storage keeps would come back as another type."""
    return {str(value): value for value in values}


def _encoder(schema: AnySchema) -> tuple[Any, tuple[Modelled, ...]]:
    """A step from the schema's columns to the matrix of :func:`encode`, and these columns; of
    images from pixels to those of :func:`flatten`, and none."""
    from sklearn.preprocessing import FunctionTransformer

    if isinstance(schema, ImageSchema):
        return FunctionTransformer(flatten, kw_args={"maximum": schema.maximum}), ()
    columns = features_of(schema)
    given = {"columns": columns, "missing_values": schema.missing_values}
    return FunctionTransformer(encode, kw_args=given), columns


def _vectors(schema: AnySchema) -> Any:
    """Numbers scaled, with the gaps at the median and told; categories one-hot, by the schema.
    Pixels in [0, 1]."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    encoder, columns = _encoder(schema)
    if not columns:
        return encoder
    codes = [place for place, column in enumerate(columns) if _count_codes(column)]
    numbers = [place for place, column in enumerate(columns) if not _count_codes(column)]
    median = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    hot = OneHotEncoder(
        categories=[list(range(_count_codes(columns[place]))) for place in codes],
        # A gap has no coordinate.
        handle_unknown="ignore",
        sparse_output=False,
    )
    parts = [
        ("numbers", make_pipeline(median, StandardScaler()), numbers),
        ("categories", hot, codes),
    ]
    return make_pipeline(encoder, ColumnTransformer(parts))


def _count_codes(column: Modelled) -> int:
    """Categories of a column; 0 of numbers and moments."""
    return len(column.categories) if isinstance(column, Categorical | Boolean) else 0


def _count_coordinates(schema: AnySchema) -> int:
    """Of :func:`_vectors`, without flags of gaps."""
    if isinstance(schema, ImageSchema):
        return schema.pixels
    return sum(_count_codes(column) or 1 for column in features_of(schema))


def _boosting(schema: AnySchema, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.pipeline import Pipeline

    encoder, columns = _encoder(schema)
    are_codes = [0 < _count_codes(column) <= _MOST_CODES for column in columns]
    kind = HistGradientBoostingClassifier if schema.classes else HistGradientBoostingRegressor
    model = kind(categorical_features=are_codes or None, early_stopping=False, random_state=seed)
    return Pipeline([("columns", encoder), ("model", model)])


def _on_vectors(make: Callable[[AnySchema, int], Any]) -> Callable[[AnySchema, int], Any]:
    from sklearn.pipeline import Pipeline

    return lambda schema, seed: Pipeline(
        [("columns", _vectors(schema)), ("model", make(schema, seed))]
    )


def _linear(schema: AnySchema, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression, Ridge

    return LogisticRegression(max_iter=500) if schema.classes else Ridge()


def _forest(schema: AnySchema, seed: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestClassifier if schema.classes else RandomForestRegressor
    return kind(random_state=seed)


def _perceptron(schema: AnySchema, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor

    # Without early stopping a net learns the release's noise.
    given = {"early_stopping": True, "max_iter": 100, "n_iter_no_change": 5, "random_state": seed}
    return MLPClassifier(**given) if schema.classes else _scaled(MLPRegressor(**given))


def _neighbours(schema: AnySchema, seed: int) -> Any:
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    return (KNeighborsClassifier if schema.classes else KNeighborsRegressor)()


def _vector_machine(schema: AnySchema, seed: int) -> Any:
    from sklearn.svm import SVC, SVR

    # As "scale" would have it of coordinates of deviation 1, but a number that can be searched.
    gamma = 1 / _count_coordinates(schema)
    return SVC(gamma=gamma, random_state=seed) if schema.classes else _scaled(SVR(gamma=gamma))


def _scaled(regressor: Any) -> Any:
    """Trained on targets of deviation 1, whatever their unit is."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.preprocessing import StandardScaler

    return TransformedTargetRegressor(regressor, transformer=StandardScaler())


def _student(schema: AnySchema, seed: int) -> Any:
    from fedsynth.tuning.images import StudentNetwork

    assert isinstance(schema, ImageSchema)
    return StudentNetwork(shape_of(schema), random_state=seed)


def _trees_learned(settings: Settings) -> float:
    rounds, leaves = settings["model__max_iter"], settings["model__max_leaf_nodes"]
    return float(math.log(settings["model__learning_rate"] * rounds * math.log2(leaves)))


def _scaled_space(space: Space) -> Space:
    """The same choices of a model that :func:`_scaled` wraps."""
    inner = {name: name.replace("model__", "model__regressor__") for name in space.choices}

    def capacity(settings: Settings) -> float:
        assert space.capacity is not None
        return space.capacity({name: settings[inner[name]] for name in inner})

    choices = {inner[name]: choice for name, choice in space.choices.items()}
    return replace(space, choices=choices, capacity=capacity)


_SCALED = ("multilayer perceptron", "support vectors")
_SPACES = (
    Space(
        "gradient boosting",
        _boosting,
        {
            "model__learning_rate": (0.01, 0.3, "log"),
            "model__max_iter": (25, 400, "log"),
            "model__max_leaf_nodes": (3, 31, "log"),
            "model__min_samples_leaf": (20, 200, "log"),
            "model__l2_regularization": [0.0, 0.1, 1.0, 10.0, 100.0],
        },
        _trees_learned,
    ),
    Space(
        "random forest",
        _on_vectors(_forest),
        {
            "model__min_samples_leaf": (3, 100, "log"),
            "model__max_features": (0.3, 1.0),
            "model__n_estimators": [100],
        },
        lambda settings: -float(math.log(settings["model__min_samples_leaf"])),
    ),
    Space(
        "multilayer perceptron",
        _on_vectors(_perceptron),
        {
            "model__hidden_layer_sizes": [(16,), (32,), (64,), (100,), (32, 32), (64, 64)],
            "model__alpha": (1e-5, 1.0, "log"),
            "model__learning_rate_init": (1e-4, 1e-2, "log"),
        },
        lambda settings: float(
            math.log(math.prod(settings["model__hidden_layer_sizes"]))
            - math.log(settings["model__alpha"])
        ),
    ),
    Space(
        "k nearest neighbours",
        _on_vectors(_neighbours),
        {"model__n_neighbors": (1, 200, "log"), "model__weights": ["uniform", "distance"]},
        lambda settings: -float(math.log(settings["model__n_neighbors"])),
    ),
    Space(
        "support vectors",
        _on_vectors(_vector_machine),
        {"model__C": (1e-2, 1e2, "log"), "model__gamma": (1e-4, 1.0, "log")},
        lambda settings: float(math.log(settings["model__C"]) + math.log(settings["model__gamma"])),
    ),
)
_STUDENT = Space(
    "student network",
    _on_vectors(_student),
    {
        "model__learning_rate": (1e-4, 1e-2, "log"),
        "model__epochs": (1, 20, "log"),
        "model__batch": [32, 64, 128],
        "model__maps": (8, 64, "log"),
        "model__hidden": (25, 400, "log"),
        "model__weight_decay": [0.0, 1e-3, 1e-2, 1e-1],
    },
    lambda settings: float(
        math.log(settings["model__learning_rate"] * settings["model__epochs"])
        + math.log(settings["model__maps"] * settings["model__hidden"])
    ),
)
_CLASSIFIERS = (
    *_SPACES,
    Space(
        "logistic regression",
        _on_vectors(_linear),
        {"model__C": (1e-4, 1e2, "log")},
        lambda settings: float(math.log(settings["model__C"])),
        pairs=3,
    ),
)
_REGRESSORS = (
    *(_scaled_space(space) if space.name in _SCALED else space for space in _SPACES),
    Space(
        "ridge regression",
        _on_vectors(_linear),
        {"model__alpha": (1e-3, 1e4, "log")},
        lambda settings: -float(math.log(settings["model__alpha"])),
        pairs=3,
    ),
)
