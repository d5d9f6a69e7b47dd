"""YAML read by the rules of YAML 1.2, where `no` is a word and `1e3` a number."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fedsynth.demands import demand_path
from fedsynth.errors import ConfigError, FedsynthError

_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")
_BOOL = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_INT = re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$")
_FLOAT = re.compile(
    r"^[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.inf|\.Inf|\.INF)$"
    r"|^(?:\.nan|\.NaN|\.NAN)$"
)


class _Loader(yaml.SafeLoader):
    """Safe loader with YAML 1.2's core types; a repeated key is an error."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for position, key in enumerate(keys):
            if key in keys[:position]:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key!r} stands twice", node.value[position][0].start_mark
                )
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Safe dumper that quotes what either version of YAML would take for something else."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # YAML folds every kind of line break, Unicode's too, unless it is escaped in double quotes.
    style = '"' if text.splitlines() not in ([], [text]) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> float:
    return float(loader.construct_scalar(node).replace(".inf", "inf").replace(".nan", "nan"))


for _tag, _pattern, _first in (
    ("null", _NULL, ["~", "n", "N", ""]),
    ("bool", _BOOL, list("tTfF")),
    ("int", _INT, list("-+0123456789")),
    ("float", _FLOAT, list("-+0123456789.")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _pattern, _first)
_Dumper.add_representer(str, _represent_text)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)


def read_yaml(path: str | Path, fault: type[FedsynthError]) -> dict[str, Any]:
    """Read a YAML file whose top level is a mapping.

    Raises:
        `fault`: naming the file, and the line where it is not YAML.
    """
    return parse_yaml(read_text(path, fault), path, fault)


def read_text(path: str | Path, fault: type[FedsynthError]) -> str:
    """A file's text, its line ends as they are.

    Raises:
        `fault`: naming the file.
    """
    path = demand_path("path", path)
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return file.read()
    except OSError as error:
        raise fault(f"{path}: cannot be read ({error.strerror}); check the path") from None
    except UnicodeDecodeError:
        raise fault(f"{path}: is not UTF-8 text") from None


def parse_yaml(text: str, path: str | Path, fault: type[FedsynthError]) -> dict[str, Any]:
    """The mapping that a file's text holds.

    Raises:
        `fault`: naming the file, and the line where it is not YAML.
    """
    try:
        content = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise fault(f"{path}: is not YAML{_place(error)}") from None
    if not isinstance(content, dict):
        raise fault(f"{path}: holds no keys; expected lines like `name: value`")
    return content


def parse_value(text: str) -> object:
    """One value as YAML reads it: `1e3` is a number, `[a, b]` a list; text that is no YAML stays.

    An empty text is an empty text, not null.
    """
    try:
        value: object = yaml.load(text, Loader=_Loader) if text else text
    except yaml.YAMLError:
        return text
    return value


def yaml_text(content: Mapping[str, Any]) -> str:
    """A mapping of plain values as YAML that `read_yaml` reads back as an equal one."""
    text: str = yaml.dump(
        dict(content),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=None,
        width=100,
    )
    return text


def flow_text(value: object) -> str:
    """A plain value as YAML on one line, as it may stand within other values."""
    text: str = yaml.dump(
        [value],
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=True,
        width=math.inf,
    )
    return text.strip()[1:-1]


def write_yaml(content: Mapping[str, Any], path: str | Path) -> None:
    """Write a mapping of plain values so that `read_yaml` gives back an equal one."""
    path = demand_path("path", path)
    try:
        path.write_text(yaml_text(content), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written ({error.strerror})") from None


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    line = f", line {mark.line + 1}" if mark is not None else ""
    return f"{line}: {problem}" if problem else line
