"""YAML text changed where its content has, so that comments, order and layout stay elsewhere.

Places come from PyYAML's marks; what is put there is what `yaml_text` would write. The caller reads
the result back: text that refers to itself by anchors, say, does not come out as it should.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import Any

import yaml

from fedsynth.yaml_files import flow_text

_Edit = tuple[int, int, str]
"""Start, end, and what comes between them."""


def edit_yaml(
    text: str, old: Mapping[str, Any], new: Mapping[str, Any], renamed: Mapping[str, str]
) -> str:
    """The text of a mapping `old`, changed to hold `new`.

    A comment belongs to what stands on its line, or else to what comes next, and goes with it.
    Defaults may stand in the text without being in `old` and `new`, or the other way round.

    Args:
        old, new: plain values; lists of mappings with a `name` are matched by it.
        renamed: names and keys of `old` that are others in `new`.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    edits = sorted(_Editor(text, renamed).mapping(root, old, new), reverse=True)
    for start, end, put in edits:
        text = text[:start] + put + text[end:]
    return text


def find_comments(text: str) -> list[str]:
    """The comments of a YAML text, in order, with their signs."""
    inside = [
        (token.start_mark.index, token.end_mark.index)
        for token in yaml.scan(text, Loader=yaml.SafeLoader)
        if isinstance(token, yaml.ScalarToken)
    ]
    found, place = [], 0
    for start, end in [*inside, (len(text), len(text))]:
        for line in text[place:start].splitlines():
            if "#" in line:
                found.append(line[line.index("#") :].strip())
        place = end
    return found


class _Editor:
    """The edits that turn nodes of old content into such of new."""

    def __init__(self, text: str, renamed: Mapping[str, str]) -> None:
        self.text = text
        self.renamed = renamed
        self.newline = "\r\n" if "\r\n" in text else "\n"

    def value(self, node: yaml.Node, old: Any, new: Any) -> Iterator[_Edit]:
        if flow_text(old) == flow_text(new):
            return
        if isinstance(node, yaml.MappingNode) and isinstance(old, dict) and isinstance(new, dict):
            yield from self.mapping(node, old, new)
        elif isinstance(node, yaml.SequenceNode) and old and new and isinstance(new, list):
            yield from self.sequence(node, old, new)
        else:
            yield node.start_mark.index, self._end(node), flow_text(new)

    def mapping(
        self, node: yaml.MappingNode, old: Mapping[str, Any], new: Mapping[str, Any]
    ) -> Iterator[_Edit]:
        places = {key.value: k for k, (key, _) in enumerate(node.value)}
        gone, added = [], {key: new[key] for key in new if key not in old}
        for key in old:
            if key not in places:
                # A default that the text leaves out.
                added |= {key: new[key]} if new.get(key) != old[key] and key in new else {}
                continue
            called = key if key in new else self.renamed.get(key, key)
            key_node, value_node = node.value[places[key]]
            if called in new:
                if called != key:
                    start, end = key_node.start_mark.index, key_node.end_mark.index
                    yield start, end, flow_text(called)
                    added.pop(called)
                yield from self.value(value_node, old[key], new[called])
            else:
                gone.append(places[key])
        for key in [key for key in added if key in places]:
            yield from self.value(node.value[places[key]][1], None, added.pop(key))
        texts = [f"{flow_text(key)}: {flow_text(value)}" for key, value in added.items()]
        yield from self._change(node, node.value, gone, {len(node.value): texts})

    def sequence(
        self, node: yaml.SequenceNode, old: Sequence[Any], new: Sequence[Any]
    ) -> Iterator[_Edit]:
        before = [_label(item, self.renamed) for item in old]
        gone: list[int] = []
        added: dict[int, list[str]] = {}
        matcher = SequenceMatcher(None, before, [_label(item, {}) for item in new], autojunk=False)
        for kind, a, b, c, d in matcher.get_opcodes():
            if kind == "equal" or b - a == d - c:
                for item, was, becomes in zip(node.value[a:b], old[a:b], new[c:d], strict=True):
                    yield from self.value(item, was, becomes)
            else:
                gone += range(a, b)
                added[b] = [flow_text(item) for item in new[c:d]]
        yield from self._change(node, [(item, item) for item in node.value], gone, added)

    def _change(
        self,
        node: yaml.CollectionNode,
        items: Sequence[tuple[yaml.Node, yaml.Node]],
        gone: Sequence[int],
        added: Mapping[int, Sequence[str]],
    ) -> Iterator[_Edit]:
        """Items taken out, and others put in before the given places; one stays at least."""
        added = {place: texts for place, texts in added.items() if texts}
        if gone or added:
            change = self._change_flow if node.flow_style else self._change_block
            yield from change(items, gone, added)

    def _change_flow(
        self,
        items: Sequence[tuple[yaml.Node, yaml.Node]],
        gone: Sequence[int],
        added: Mapping[int, Sequence[str]],
    ) -> Iterator[_Edit]:
        starts = [first.start_mark.index for first, _ in items]
        ends = [self._end(last) for _, last in items]
        kept = [k for k in range(len(items)) if k not in gone]
        if not kept:
            yield starts[0], ends[-1], ", ".join(chain.from_iterable(added.values()))
            return
        for k in gone:
            # With the comma behind it or, of what has nothing kept behind it, that before.
            if any(later > k for later in kept):
                yield starts[k], starts[k + 1], ""
            else:
                yield ends[k - 1], ends[k], ""
        for place, texts in added.items():
            joined = ", ".join(texts)
            if any(k >= place for k in kept):
                yield starts[place], starts[place], f"{joined}, "
            else:
                yield ends[-1], ends[-1], f", {joined}"

    def _change_block(
        self,
        items: Sequence[tuple[yaml.Node, yaml.Node]],
        gone: Sequence[int],
        added: Mapping[int, Sequence[str]],
    ) -> Iterator[_Edit]:
        first = items[0][0].start_mark
        sequence = items[0][0] is items[0][1]
        line = self.text.rindex("-", 0, first.index) if sequence else first.index
        indent = " " * (line - self._line_start(line))
        for k in gone:
            start, end = self._lines(items[k])
            if not sequence and self.text[self._line_start(start) : start].strip():
                # The first key of an item stands behind its dash.
                end = items[k + 1][0].start_mark.index
            yield start, end, ""
        for place, texts in added.items():
            lines = [f"{indent}{'- ' if sequence else ''}{text}{self.newline}" for text in texts]
            put = "".join(lines)
            at = self._lines(items[place - 1])[1] if place else self._lines(items[0])[0]
            if at and self.text[at - 1] != "\n":
                put = self.newline + put.removesuffix(self.newline)
            yield at, at, put

    def _lines(self, item: tuple[yaml.Node, yaml.Node]) -> tuple[int, int]:
        """Where an item of a block begins, its own comment lines included, and the next line."""
        first, last = item
        start = first.start_mark.index
        if first is last:
            start = self.text.rindex("-", 0, start)
        end = self.text.find("\n", self._end(last))
        begin = self._line_start(start)
        if self.text[begin:start].strip():
            return start, len(self.text) if end < 0 else end + 1
        while begin:
            above = self._line_start(begin - 1)
            if not self.text[above:begin].lstrip().startswith("#"):
                break
            begin = above
        return begin, len(self.text) if end < 0 else end + 1

    def _line_start(self, place: int) -> int:
        return self.text.rfind("\n", 0, place) + 1

    def _end(self, node: yaml.Node) -> int:
        """Where a node's own text ends: a block's mark is behind what comes next."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
            last = node.value[-1]
            return self._end(last[1] if isinstance(last, tuple) else last)
        end: int = node.end_mark.index
        start: int = node.start_mark.index
        return start + len(self.text[start:end].rstrip())


def _label(item: Any, renamed: Mapping[str, str]) -> str:
    if isinstance(item, Mapping) and "name" in item:
        return f"name {renamed.get(item['name'], item['name'])}"
    return flow_text(item)
