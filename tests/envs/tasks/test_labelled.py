from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from task_checks import check_labels, check_stream

from contextpilot.core.segment import Kind
from contextpilot.errors import ConfigurationError, TranscriptError, UnknownTaskError
from contextpilot_envs.tasks.base import Task, TaskSource
from contextpilot_envs.tasks.labelled import CiLogSource, LocomoSource, MultihopSource
from contextpilot_envs.tasks.labelled.ci_logs import log_lines

DATA = os.environ.get("CONTEXTPILOT_DATA", "")
needs_data = pytest.mark.skipif(not DATA, reason="CONTEXTPILOT_DATA is not set")
SOURCES: list[Callable[[Path], TaskSource]] = [MultihopSource, CiLogSource, LocomoSource]
NAMES = ["multihop", "ci_logs", "locomo"]


def musique(number: int, **changes: Any) -> dict[str, Any]:
    """A question of two steps: the second answer is mentioned too often to prove anything."""
    paragraphs = [
        {"idx": place, "title": f"Title {place}", "paragraph_text": text}
        for place, text in enumerate(
            [
                f"Aldra{number} lies north. Its mayor is Marit Holm {number}. It rains.",
                f"Marit Holm {number} was born in Oslo. She likes tea.",
                "Oslo is large. Nothing else is known.",
                "Many travel to Oslo. Few return.",
            ]
        )
    ]
    steps = [
        {"answer": f"Marit Holm {number}", "paragraph_support_idx": 0},
        {"answer": "Oslo", "paragraph_support_idx": 1},
    ]
    record = {
        "id": f"q{number}",
        "question": f"Where was the mayor of Aldra{number} born?",
        "paragraphs": paragraphs,
        "question_decomposition": steps,
    }
    return {**record, **changes}


def hotpot(number: int, **changes: Any) -> dict[str, Any]:
    record = {
        "_id": f"h{number}",
        "question": f"Is river {number} longer than the lake is wide?",
        "context": [
            [f"River {number}", [f"River {number} is long.", f" It has {number} bends in all."]],
            ["Lake", ["The lake is wide.", " It is cold."]],
        ],
        "supporting_facts": [[f"River {number}", 1]],
    }
    return {**record, **changes}


def write_multihop(folder: Path, first: list[Any], second: list[Any]) -> Path:
    (folder / "multihop").mkdir()
    (folder / "multihop" / "musique_train.json").write_text(json.dumps(first))
    (folder / "multihop" / "hotpotqa_train.json").write_text(json.dumps(second))
    return folder


def write_log(folder: Path, log: str, labels: str, run: str = "demo_1") -> Path:
    (folder / "cidiff" / run).mkdir(parents=True)
    (folder / "cidiff" / run / "fail.log").write_bytes(log.encode())
    (folder / "cidiff" / run / "groundtruth").write_bytes(labels.encode())
    return folder


def write_locomo(folder: Path, **changes: Any) -> Path:
    def turn(turn_id: str, speaker: str, text: str) -> dict[str, str]:
        return {"dia_id": turn_id, "speaker": speaker, "text": text}

    record: dict[str, Any] = {
        "sample_id": "conv-1",
        "conversation": {
            "speaker_a": "Ann",
            "speaker_b": "Bo",
            "session_2_date_time": "3 May",
            "session_2": [turn("D2:1", "Bo", "The cat is called Miso.")],
            "session_1_date_time": "1 May",
            "session_1": [turn("D1:1", "Ann", "I moved to Bergen."), turn("D1:2", "Bo", "Nice!")],
        },
        "qa": [
            {"question": "Where does Ann live?", "evidence": ["D1:1"], "category": 1},
            {"question": "What about both?", "evidence": ["D1:1; D2:1"], "category": 2},
            {"question": "What is the dog called?", "evidence": ["D2:1"], "category": 5},
            {"question": "What is lost?", "evidence": ["D9:9"], "category": 1},
            {"question": "What is cut off?", "evidence": ["D"], "category": 1},
        ],
    }
    (folder / "locomo").mkdir()
    path = folder / "locomo" / "locomo7.json"
    path.write_text(json.dumps([{**record, **changes}]))
    return folder


def all_tasks(source: TaskSource) -> list[Task]:
    return [source.load(id_) for split in ("train", "validation") for id_ in source.ids(split)]


def test_multihop_demands_each_question_twice(tmp_path: Path) -> None:
    data = write_multihop(
        tmp_path, [musique(n) for n in range(6)], [hotpot(n) for n in range(40, 46)]
    )
    source = MultihopSource(data, documents_per_request=3)
    loaded = all_tasks(source)
    asked = [name for task in loaded for name in task.metadata["questions"].split()]
    assert sorted(asked) == [f"h{n}" for n in range(40, 46)] + [f"q{n}" for n in range(6)]
    assert all(2 <= len(task.metadata["questions"].split()) <= 5 for task in loaded)
    for task in loaded:
        check_stream(task)
        check_labels(task)
        count = len(task.metadata["questions"].split())
        assert [demand.final for demand in task.demands] == [False] * count + [True] * count
        early, late = task.demands[:count], task.demands[count:]
        assert [demand.facts for demand in early] == [demand.facts for demand in late]
        assert late[-1].request == task.requests - 1


def test_multihop_demands_a_sentence_where_the_answer_proves_nothing(tmp_path: Path) -> None:
    data = write_multihop(tmp_path, [musique(1), musique(2)], [])
    facts = [
        (fact.value, fact.kind) for task in all_tasks(MultihopSource(data)) for fact in task.facts
    ]
    assert ("Marit Holm 1", "name") in facts
    assert ("Marit Holm 1 was born in Oslo.", "clause") in facts


def test_multihop_reads_supporting_sentences(tmp_path: Path) -> None:
    data = write_multihop(tmp_path, [], [hotpot(41), hotpot(42)])
    facts = [fact.value for task in all_tasks(MultihopSource(data)) for fact in task.facts]
    assert sorted(facts) == ["It has 41 bends in all.", "It has 42 bends in all."]


def test_multihop_order_is_seeded_by_the_task(tmp_path: Path) -> None:
    data = write_multihop(tmp_path, [musique(n) for n in range(30)], [])
    first, second = MultihopSource(data), MultihopSource(data)
    orders = set()
    for id_ in first.ids("train"):
        assert first.load(id_) == second.load(id_)
        documents = [s.name for s in first.load(id_).segments if s.kind == Kind.DOCUMENT]
        orders.add(tuple(documents[:4]))
    assert len(orders) > 1


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (
            [musique(1, question=3)],
            [],
            "musique_train.json, record 1: field 'question' must",
        ),
        ([musique(0), musique(1, paragraphs=None)], [], "record 2: field 'paragraphs' .* nothing"),
        ([musique(1, paragraphs=[])], [], "record 1: no paragraph has idx 0"),
        ([["no object"]], [], "musique_train.json, line 1: must be a JSON array of objects"),
        ([], [hotpot(1, supporting_facts=[["Lake", 7]])], "hotpotqa_train.json, .* no sentence 7"),
        ([], [hotpot(1, supporting_facts=[["Sea", 0]])], "no sentence 0 under 'Sea'"),
    ],
)
def test_multihop_names_what_is_malformed(
    tmp_path: Path, first: list[Any], second: list[Any], message: str
) -> None:
    with pytest.raises(TranscriptError, match=message):
        MultihopSource(write_multihop(tmp_path, first, second))


def test_broken_json_is_named_by_line(tmp_path: Path) -> None:
    write_multihop(tmp_path, [], [])
    (tmp_path / "multihop" / "musique_train.json").write_text('[\n{"id": 1},\n{"id" 2}]')
    with pytest.raises(TranscriptError, match=r"musique_train.json, line 3: not JSON"):
        MultihopSource(tmp_path)


def test_wrong_encoding_is_named_by_line(tmp_path: Path) -> None:
    data = write_log(tmp_path, "", "DEFAULT\nE 1\n")
    (data / "cidiff" / "demo_1" / "fail.log").write_bytes(b"ok\nbad \xff\n")
    with pytest.raises(TranscriptError, match=r"fail.log, line 2: not UTF-8 \(byte 0xff\)"):
        all_tasks(CiLogSource(data))


@pytest.mark.parametrize("source", [MultihopSource, LocomoSource])
def test_missing_files_are_named(tmp_path: Path, source: Callable[[Path], TaskSource]) -> None:
    with pytest.raises(TranscriptError, match=r"\.json cannot be read: No such file"):
        source(tmp_path)


def test_missing_logs_are_named(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="cidiff holds no logs"):
        CiLogSource(tmp_path)
    data = write_log(tmp_path, "a\n", "DEFAULT\nE 1\n")
    (data / "cidiff" / "demo_1" / "groundtruth").unlink()
    with pytest.raises(TranscriptError, match="groundtruth cannot be read"):
        all_tasks(CiLogSource(data))


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_the_data_folder_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, source: Callable[[], TaskSource]
) -> None:
    monkeypatch.delenv("CONTEXTPILOT_DATA", raising=False)
    with pytest.raises(TranscriptError, match="CONTEXTPILOT_DATA is not set"):
        source()


def test_lines_end_where_the_labels_count_them() -> None:
    assert log_lines("a\nb\r\nc\rd\x0ce\u2028f\n") == ["a", "b", "c", "d\x0ce\u2028f"]
    assert log_lines("a\n\r\nb") == ["a", "", "b"]


def test_error_lines_are_demanded_range_by_range(tmp_path: Path) -> None:
    progress = "10%\r20%\r"
    log = progress + "\n".join(f"line {n:02d}" for n in range(3, 31)) + "\n"
    data = write_log(tmp_path, log, "DEFAULT\nE 3-4\nC 5\nE 28\nE 29-30\n")
    (task,) = all_tasks(CiLogSource(data, lines_per_read=10))
    check_stream(task)
    check_labels(task)
    values = [[task.facts[fact].value for fact in demand.facts] for demand in task.demands]
    assert values == [["line 03", "line 04"], ["line 28", "line 29", "line 30"]]
    heads = [s.text.partition("\n")[0] for s in task.segments if s.kind == Kind.RESULT]
    assert heads == ["lines 21-30 of 30", "lines 1-10 of 30", "lines 11-20 of 30"]
    assert task.cluster == "demo"
    (straight,) = all_tasks(CiLogSource(data, lines_per_read=10, tail_first=False))
    assert straight.segments[2].text.startswith("lines 1-10 of 30\n10%\n20%\nline 03")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("DEFAULT\nE 1\nX 2\n", "groundtruth, line 3: must be `E 10-12`.* Received 'X 2'"),
        ("DEFAULT\nE 2-1\n", "line 2: must be"),
        ("DEFAULT\nE 0\n", "line 2: must be"),
        ("DEFAULT\nE 2-9\n", "line 2: .* within the 3 lines"),
        ("DEFAULT\nC 1\n", "no error line is labelled"),
        ("DEFAULT\nE 2\n", "no error line is labelled"),
    ],
)
def test_bad_labels_are_named(tmp_path: Path, labels: str, message: str) -> None:
    data = write_log(tmp_path, "one\n---\nthree\n", labels)
    with pytest.raises(TranscriptError, match=message):
        all_tasks(CiLogSource(data))


def test_runs_of_a_project_stay_in_one_split(tmp_path: Path) -> None:
    for run in [f"{project}_{n}" for project in "abcdef" for n in (1, 2)]:
        write_log(tmp_path, "x\n", "DEFAULT\nE 1\n", run)
    source = CiLogSource(tmp_path)
    sides = {
        split: {id_.split("/")[1][0] for id_ in source.ids(split)}
        for split in ("train", "validation")
    }
    assert not sides["train"] & sides["validation"]
    assert (len(sides["train"]), len(sides["validation"])) == (4, 2)


def test_locomo_asks_at_the_end_what_can_be_answered(tmp_path: Path) -> None:
    source = LocomoSource(write_locomo(tmp_path))
    assert list(source.ids("train")) == []
    (task,) = all_tasks(source)
    check_stream(task)
    check_labels(task)
    assert [demand.query for demand in task.demands] == ["Where does Ann live?", "What about both?"]
    assert [demand.request for demand in task.demands] == [3, 4]
    values = [[task.facts[fact].value for fact in demand.facts] for demand in task.demands]
    assert values == [["I moved to Bergen."], ["I moved to Bergen.", "The cat is called Miso."]]
    assert task.metadata["skipped_questions"] == "3"
    names = [s.name for s in task.segments if s.kind == Kind.DOCUMENT]
    assert names == ["Session 1, 1 May", "Session 2, 3 May"]


def test_locomo_batches_its_questions(tmp_path: Path) -> None:
    source = LocomoSource(write_locomo(tmp_path), questions_per_task=1)
    assert list(source.ids("validation")) == ["locomo/conv-1/00", "locomo/conv-1/01"]
    assert [len(task.demands) for task in all_tasks(source)] == [1, 1]


def test_locomo_names_what_is_malformed(tmp_path: Path) -> None:
    talk = {"speaker_a": "Ann", "speaker_b": "Bo", "session_1": [{"text": "x"}]}
    with pytest.raises(TranscriptError, match="record 1, session_1: field 'dia_id' must be a str"):
        LocomoSource(write_locomo(tmp_path, conversation=talk))


def test_settings_and_ids_are_checked(tmp_path: Path) -> None:
    data = write_locomo(write_log(write_multihop(tmp_path, [musique(1)], []), "x\n", "D\nE 1\n"))
    with pytest.raises(ConfigurationError, match="`documents_per_request` must be 1 or more"):
        MultihopSource(data, documents_per_request=0)
    with pytest.raises(ConfigurationError, match="`lines_per_read` must be 1 or more"):
        CiLogSource(data, lines_per_read=0)
    with pytest.raises(ConfigurationError, match="`questions_per_task` must be 1 or more"):
        LocomoSource(data, questions_per_task=0)
    for make in SOURCES:
        source = make(data)
        with pytest.raises(UnknownTaskError, match=f"does not belong to '{source.name}'"):
            source.load("nothing/000")
        with pytest.raises(ConfigurationError, match="no such split"):
            source.ids("test")


@needs_data
@pytest.mark.parametrize(("make", "name"), list(zip(SOURCES, NAMES, strict=True)), ids=NAMES)
def test_real_data_makes_well_formed_tasks(make: Callable[[Path], TaskSource], name: str) -> None:
    source = make(Path(DATA))
    train, validation = source.ids("train"), source.ids("validation")
    assert not set(train) & set(validation)
    assert validation
    assert bool(train) == (name != "locomo")
    for id_ in [*train[:12], *validation[:12]]:
        task = source.load(id_)
        assert (task.id, task.source) == (id_, name)
        check_stream(task)
        check_labels(task)
