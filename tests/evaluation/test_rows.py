from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluation.schema_check import violations
from evaluation.synthetic import make_row, make_rows

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation.rows import EvaluationRow, RemovedFact, objective_value
from contextpilot.evaluation.storage import (
    SCHEMA,
    Evaluation,
    check_unique,
    load_evaluation,
    replace_text,
    save_evaluation,
)

CREATED = "2026-01-02T03:04:05+00:00"
FACT = RemovedFact(9, "negation", "summarize", 4, "summary")


def an_evaluation() -> Evaluation:
    rows = [
        *make_rows(["raw", "drop_oldest"], horizons=(10, 40), tasks=3),
        make_row(source="ĂŻ 日本", removed_facts=(FACT,), silent_misses=1, edits_by_op={"keep": 7}),
    ]
    return Evaluation(CREATED, ("evaluate", "--seed", "1"), {"seed": 1, "x": [1.5]}, tuple(rows))


def broken_file(tmp_path: Path, change: Any) -> Path:
    path = tmp_path / "evaluation.json"
    save_evaluation(path, an_evaluation())
    data = json.loads(path.read_text(encoding="utf-8"))
    change(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


class TestObjective:
    def test_by_hand(self) -> None:
        # (400 + 5 * 20) / 1000 = 0.5, and 2 more for the failed task.
        assert objective_value(400, 1000, 20, False) == -0.5
        assert objective_value(400, 1000, 20, True) == -2.5
        assert objective_value(400, 1000, 20, False, miss_price=20) == -0.8

    def test_failing_never_pays(self) -> None:
        assert objective_value(0, 1000, 0, True) < objective_value(1000, 1000, 0, False)


class TestRow:
    def test_the_documented_order(self) -> None:
        names = [f.name for f in fields(EvaluationRow)]
        assert names[:20] == [
            "policy", "source", "split", "notice", "horizon", "task_id", "seed", "objective",
            "demand_success", "task_success", "silent_misses", "forced_reloads", "billed_tokens",
            "raw_billed_tokens", "mean_request_tokens", "peak_tokens", "edits", "overflows",
            "key_facts_kept", "seconds",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"policy": ""}, "`policy` .*Received ''.*string"),
            ({"horizon": 10.0}, "`horizon` .*Received 10.0.*whole number"),
            ({"horizon": True}, "`horizon` .*Received True"),
            ({"horizon": 0}, "`horizon` .*above 0"),
            ({"seed": np.int64(1)}, "`seed` .*Python int"),
            ({"seconds": float("nan")}, "`seconds` .*finite"),
            ({"seconds": -1.0}, "`seconds` .*negative"),
            ({"task_success": 1}, "`task_success` .*true or false"),
            ({"demand_success": 1.1}, "`demand_success` .*share"),
            ({"key_facts_kept": 1.1}, "`key_facts_kept` .*share"),
            ({"edits": 2, "edits_by_op": {"fold": 1}}, "`edits` .*Received 2.*holds 1"),
            ({"edits_by_op": {"folds": 1}}, "`edits_by_op` .*summarize"),
            ({"edits_by_op": {"fold": -1}}, "`edits_by_op`"),
            ({"forced_reloads": 2, "revisits": 1}, "`revisits` .*all 2 forced"),
            ({"failed": True}, "`failed` .*task_success"),
            ({"objective": -1.1}, "`objective` .*Received -1.1.*objective_value.*-1.0"),
            ({"billed_without_prefix_tokens": 1001.0}, "`billed_without_prefix_tokens` .*part"),
            ({"raw_without_prefix_tokens": 1001.0}, "`raw_without_prefix_tokens` .*part"),
            ({"removed_facts": [FACT]}, "`removed_facts` .*tuple of RemovedFact"),
        ],
    )
    def test_refuses(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            make_row(**changes)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"removed_by": "folds"}, "`removed_by` .*mean 'fold'"),
            ({"seen": "stubs"}, "`seen` .*mean 'stub'"),
            ({"request": -1}, "`request`"),
            ({"removed_at": -2}, "`removed_at`"),
            ({"fact_kind": 3}, "`fact_kind` .*string"),
        ],
    )
    def test_refuses_a_fact(self, change: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            replace(FACT, **change)

    def test_keep_is_not_an_edit(self) -> None:
        assert make_row(edits=1, edits_by_op={"keep": 9, "fold": 1}).edits == 1

    def test_is_hashable(self) -> None:
        assert len({make_row(), make_row(), make_row(seed=1)}) == 2


class TestFile:
    def test_round_trip(self, tmp_path: Path) -> None:
        path = tmp_path / "new" / "evaluation.json"
        save_evaluation(path, an_evaluation())
        assert load_evaluation(path) == an_evaluation()
        assert path.stat().st_mode & 0o777 == 0o644

    def test_equal_evaluations_give_equal_bytes(self, tmp_path: Path) -> None:
        for name in "ab":
            save_evaluation(tmp_path / name, an_evaluation())
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

    def test_no_rows(self, tmp_path: Path) -> None:
        empty = Evaluation(CREATED, (), {}, ())
        save_evaluation(tmp_path / "e.json", empty)
        assert load_evaluation(tmp_path / "e.json") == empty

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda d: d.pop("rows"), "`rows` is missing"),
            (lambda d: d.update(version=2), "`version` .*Received 2"),
            (lambda d: d.update(created="yesterday"), "`created` .*ISO"),
            (lambda d: d.update(created="2026-01-02T03:04:05"), "`created` .*time zone"),
            (lambda d: d.update(command="a b"), "`command` .*list of strings"),
            (lambda d: d.update(config=[]), "`config` .*object"),
            (lambda d: d.update(rows={}), "`rows` .*list"),
            (lambda d: d.update(row=[]), "unknown field. Received 'row'. Did you mean 'rows'"),
            (lambda d: d["rows"].__setitem__(3, 5), "row 3: .*not a JSON object. Received 5"),
            (lambda d: d["rows"][2].pop("split"), "row 2: `split` is missing"),
            (lambda d: d["rows"][2].update(polcy="x"), "row 2: .*'polcy'. Did you mean 'policy'"),
            (lambda d: d["rows"][4].update(seed="0"), "row 4: `seed` .*Received '0'"),
            (lambda d: d["rows"][4].update(seconds=None), "row 4: `seconds` .*Received None"),
            (lambda d: d["rows"][0].update(removed_facts={}), "row 0: `removed_facts` .*list"),
            (lambda d: d["rows"][-1]["removed_facts"][0].pop("seen"), "row 12: `seen` is missing"),
            (lambda d: d["rows"][-1]["removed_facts"][0].update(seen="x"), "row 12: `seen` "),
            (lambda d: d["rows"].append(d["rows"][1]), "rows 1 and 13 are about the same"),
            (lambda d: d["config"].update(x=float("nan")), "Received NaN, which is not JSON"),
        ],
    )
    def test_names_what_is_wrong(self, tmp_path: Path, change: Any, message: str) -> None:
        with pytest.raises(ConfigurationError, match=r"evaluation\.json: .*" + message):
            load_evaluation(broken_file(tmp_path, change))

    @pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000])
    def test_refuses_what_is_not_json(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "evaluation.json"
        path.write_bytes(content)
        with pytest.raises(ConfigurationError, match=r"evaluation\.json is not JSON in UTF-8"):
            load_evaluation(path)

    @pytest.mark.parametrize("value", [float("inf"), {1, 2}])
    def test_refuses_a_config_that_json_lacks(self, tmp_path: Path, value: object) -> None:
        with pytest.raises(ConfigurationError, match="`config` cannot be written"):
            save_evaluation(tmp_path / "e.json", replace(an_evaluation(), config={"x": value}))
        assert list(tmp_path.iterdir()) == []

    def test_a_failed_write_leaves_the_old_file_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "evaluation.json"
        save_evaluation(path, an_evaluation())
        before = path.read_bytes()

        def full_disk(descriptor: int) -> None:
            raise OSError("no space left")

        monkeypatch.setattr("os.fsync", full_disk)
        with pytest.raises(OSError, match="no space"):
            replace_text(path, "half a")
        assert path.read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["evaluation.json"]

    def test_unique_by_all_seven(self) -> None:
        row = make_row()
        others: list[dict[str, Any]] = [
            {"policy": "b"}, {"source": "b"}, {"split": "b"}, {"notice": "b"}, {"horizon": 11},
            {"task_id": "b"}, {"seed": 1},
        ]  # fmt: skip
        check_unique([row, *(replace(row, **other) for other in others)])
        with pytest.raises(ConfigurationError, match="rows 0 and 1 are about the same"):
            check_unique([row, replace(row, cluster="b")])


class TestSchema:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))

    def test_has_the_dataclass_fields_in_order(self) -> None:
        for name, record in (("row", EvaluationRow), ("removed_fact", RemovedFact)):
            names = [f.name for f in fields(record)]
            definition = self.schema["$defs"][name]
            assert list(definition["properties"]) == names
            assert definition["required"] == names

    def test_saved_rows_conform(self, tmp_path: Path) -> None:
        save_evaluation(tmp_path / "e.json", an_evaluation())
        data = json.loads((tmp_path / "e.json").read_text(encoding="utf-8"))
        assert violations(data, self.schema, self.schema) == []

    @pytest.mark.parametrize(
        "change",
        [
            {"seed": "0"}, {"seed": True}, {"horizon": 0}, {"horizon": 1.5}, {"policy": ""},
            {"demand_success": 1.1}, {"task_success": 1}, {"raw_billed_tokens": 0}, {"extra": 1},
            {"edits_by_op": {"folds": 1}}, {"edits_by_op": {"fold": -1}},
            {"removed_facts": [{**asdict(FACT), "seen": "x"}]},
            {"removed_facts": [{**asdict(FACT), "removed_at": -2}]},
        ],
    )  # fmt: skip
    def test_refuses_what_the_rows_refuse(self, change: dict[str, Any]) -> None:
        row = json.loads(json.dumps(asdict(make_row()))) | change
        data = {"version": 1, "created": CREATED, "command": [], "config": {}, "rows": [row]}
        assert violations(data, self.schema, self.schema)
