"""YAML read by the rules of YAML 1.2, where `no` is a word and `1e3` a number.

A file may come from anybody: what it holds is bounded before it is built, for a few aliases of
aliases stand for more values than there is memory.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from yaml.composer import Composer

from fedsynth.demands import demand_path
from fedsynth.errors import FedsynthError
from fedsynth.files import read_plain, writing

_NULL = re.compile(r"^(?:~|null|Null|NULL|)$")
_BOOL = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_INT = re.compile(r"^[-+]?(?:0|[1-9][0-9]*)$")
_FLOAT = re.compile(
    r"^[-+]?(?:(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.inf|\.Inf|\.INF)$"
    r"|^(?:\.nan|\.NaN|\.NAN)$"
)

MOST_VALUES, MOST_DEPTH, MOST_DIGITS = 1_000_000, 60, 300
"""Of a file, those that aliases stand for included; of lists within lists; of a whole number,
which a float still holds."""
_TAGS = {
    yaml.ScalarNode: ("null", "bool", "int", "float", "str"),
    yaml.SequenceNode: ("seq",),
    yaml.MappingNode: ("map",),
}


if TYPE_CHECKING or not yaml.__with_libyaml__:
    _Base = yaml.SafeLoader
else:

    class _Base(Composer, yaml.CSafeLoader):
        """libyaml parses five times as fast; what it parses is composed in Python, as below."""

        def __init__(self, stream):  # noqa: ANN001, ANN204
            yaml.CSafeLoader.__init__(self, stream)
            Composer.__init__(self)


class _Loader(_Base):
    """Safe loader with YAML 1.2's core types; a repeated key is an error."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012
    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._depth += 1
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        if self._depth > MOST_DEPTH:
            raise _fault(f"lists stand in lists more than {MOST_DEPTH} deep", event)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        start, _, name = ("", "", "") if node is None else node.tag.rpartition(":")
        if node is not None and (start != "tag:yaml.org,2002" or name not in _TAGS[type(node)]):
            raise _fault(f"{node.tag!r} is no kind that a value here can have", event)
        return node

    def construct_document(self, node: yaml.Node) -> Any:
        _demand_few(node)
        return super().construct_document(node)

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, TypeError, AttributeError):
            raise _fault(f"{node.value!r:.60} is no {node.tag.rpartition(':')[2]}", node) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            # What cannot be a key is told below.
            if isinstance(key, Hashable):
                if key in seen:
                    raise _fault(f"the key {key!r} stands twice", key_node)
                seen.add(key)
        return super().construct_mapping(node, deep)


def _fault(problem: str, at: Any) -> yaml.constructor.ConstructorError:
    """At a node or an event."""
    return yaml.constructor.ConstructorError(None, None, problem, at.start_mark)


def _demand_few(root: yaml.Node) -> None:
    """Raises ConstructorError where aliases stand for too many values, or for what they are in."""
    sizes: dict[int, int | None] = {}

    def size_of(node: yaml.Node) -> int:
        if id(node) in sizes:
            known = sizes[id(node)]
            if known is None:
                raise _fault("an alias stands for what it is in", node)
            return known
        sizes[id(node)] = None
        inner = [] if isinstance(node, yaml.ScalarNode) else node.value
        parts = (part for pair in inner for part in (pair if isinstance(pair, tuple) else (pair,)))
        size = 1 + sum(size_of(part) for part in parts)
        if size > MOST_VALUES:
            raise _fault(f"stands for more than {MOST_VALUES:,} values", node)
        sizes[id(node)] = size
        return size

    size_of(root)


class _Dumper(yaml.SafeDumper):
    """Safe dumper that quotes what either version of YAML would take for something else."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    # YAML folds every kind of line break, Unicode's too, unless it is escaped in double quotes.
    hidden = any(unicodedata.category(letter) == "Cf" for letter in text)
    style = '"' if hidden or text.splitlines() not in ([], [text]) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> int:
    text = loader.construct_scalar(node)
    if _INT.match(text) is None or len(text) > MOST_DIGITS:
        raise _fault(f"{text:.60} is no whole number of at most {MOST_DIGITS} digits", node)
    return int(text)


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
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
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
        MachineError: the system refuses it.
    """
    path = demand_path("path", path)
    try:
        return read_plain(path, fault).decode("utf-8-sig")
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
    return _show_hidden(text)


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
    return _show_hidden(text).strip()[1:-1]


def _show_hidden(text: str) -> str:
    """With letters escaped that have no shape but change how others are read, such as those that
    turn the direction of writing; texts that hold some stand in double quotes."""
    if text.isascii():
        return text
    return "".join(
        f"\\U{ord(letter):08x}" if unicodedata.category(letter) == "Cf" else letter
        for letter in text
    )


def write_yaml(content: Mapping[str, Any], path: str | Path) -> None:
    """Write a mapping of plain values so that `read_yaml` gives back an equal one."""
    path = demand_path("path", path)
    with writing(path):
        path.write_text(yaml_text(content), encoding="utf-8")


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None)
    line = f", line {mark.line + 1}" if mark is not None else ""
    return f"{line}: {problem}" if problem else line
