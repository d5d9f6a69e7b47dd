"""Notes: sentences that know which part of the report they are about."""

from __future__ import annotations

import copy
import json

from fedsynth.evaluation.reading.notes import Note, texts_by_part


def test_a_note_is_the_sentence_of_its_topic_and_its_text():
    note = Note("detection", "Telling synthetic from real", "5 rows are too few to try.")
    assert note == "Telling synthetic from real: 5 rows are too few to try."
    assert (note.part, note.text) == ("detection", "5 rows are too few to try.")
    assert Note("data", "", "One half stands for other rows.") == "One half stands for other rows."


def test_a_note_is_a_string_for_json_and_survives_a_deep_copy():
    note = Note("quality", "SDMetrics", "given 5 of the 70 columns.")
    assert json.loads(json.dumps([note])) == ["SDMetrics: given 5 of the 70 columns."]
    copied = copy.deepcopy({"notes": (note,)})["notes"][0]
    assert (copied, copied.part, copied.text) == (note, note.part, note.text)


def test_texts_are_gathered_by_part_in_their_order():
    notes = [Note("risks", "", "a"), Note("utility", "Utility", "b"), Note("risks", "", "c")]
    assert texts_by_part(notes) == {"risks": ["a", "c"], "utility": ["b"]}
