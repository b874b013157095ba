from __future__ import annotations

import re
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from evaluation.synthetic import PROFILES, family_rows, make_row, make_rows
from matplotlib.text import Text

from contextpilot.errors import ConfigurationError
from contextpilot.evaluation import plots, reading
from contextpilot.evaluation.canvas import PlotsUnavailableError, new_figure, styles
from contextpilot.evaluation.front import front_of
from contextpilot.evaluation.horizon import horizon_curve
from contextpilot.evaluation.plots import draw_front, draw_horizon, draw_sensitivity
from contextpilot.evaluation.report import ReportPaths, write_report
from contextpilot.evaluation.rows import EvaluationRow
from contextpilot.evaluation.sensitivity import objective_lines, sensitivity_table
from contextpilot.evaluation.slices import Group, ReportPlan, demand_success, group_rows
from contextpilot.evaluation.storage import load_evaluation
from contextpilot.evaluation.tables import group_tables

SETTINGS = tuple(f"keep_last[{k}]" for k in range(8))
NAMES = ("raw", "drop_oldest", "rolling_summary", "random", "learned", "oracle")
PLAN = ReportPlan(
    (*NAMES, "absent"), "raw", matched=("raw", "learned"), families={"keep_last": SETTINGS}
)
CREATED = "2026-01-02T03:04:05+00:00"


def all_rows() -> list[EvaluationRow]:
    return [
        *make_rows(NAMES, tasks=12),
        *family_rows(range(8), tasks=12),
        *make_rows([p for p in NAMES if p != "random"], (30,), 5, source="sessions/long"),
    ]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> ReportPaths:
    folder = tmp_path_factory.mktemp("report") / "new"
    return write_report(
        folder, all_rows(), PLAN, command=["evaluate", "a b"], config={"k": 1}, created=CREATED
    )


def size_of(png: Path) -> tuple[int, int]:
    data = png.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    return width, height


class TestReport:
    def test_paths(self, written: ReportPaths) -> None:
        assert [path.name for path in written.figures] == [
            "tools-validation-good-front.png",
            "tools-validation-good-horizon.png",
            "tools-validation-good-miss-price.png",
            "sessions-long-validation-good-front.png",
            "sessions-long-validation-good-miss-price.png",
        ]
        assert written.notes == ()
        for figure in written.figures:
            width, height = size_of(figure)
            assert width >= 900
            assert height >= 500

    def test_rows_are_kept(self, written: ReportPaths) -> None:
        evaluation = load_evaluation(written.evaluation)
        assert evaluation.rows == tuple(all_rows())
        assert evaluation.command == ("evaluate", "a b")
        assert evaluation.created == CREATED

    def test_every_figure_is_embedded(self, written: ReportPaths) -> None:
        text = written.report.read_text(encoding="utf-8")
        assert re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text) == [p.name for p in written.figures]

    def test_has_every_table_and_the_command(self, written: ReportPaths) -> None:
        text = written.report.read_text(encoding="utf-8")
        assert "evaluate 'a b'" in text
        for heading in ("Task effect", "Context efficiency", "Edit quality", "Objective by miss"):
            assert text.count(f"### {heading}") == 2
        assert text.count("### Task success by horizon") == 1
        assert text.count("There is no curve over horizons") == 1
        assert "nan" not in text.lower().replace("nan-", "")

    def test_is_reproducible(self, tmp_path: Path) -> None:
        rows = make_rows(["raw", "learned"], (10, 20), 4)
        plan = ReportPlan(("raw", "learned"), "raw")
        for name in "ab":
            write_report(tmp_path / name, rows, plan, created=CREATED)
        assert len(list((tmp_path / "a").iterdir())) == 5
        for path in sorted((tmp_path / "a").iterdir()):
            assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path.name

    def test_without_matplotlib_the_report_still_gets_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        paths = write_report(tmp_path, make_rows(["raw", "oracle"]), ReportPlan(("raw",), "raw"))
        assert paths.figures == ()
        (note,) = paths.notes
        assert 'pip install "contextpilot-rl[plots]"' in note
        text = paths.report.read_text(encoding="utf-8")
        assert f"> {note}" in text
        assert "![" not in text
        assert "### Task effect" in text
        with pytest.raises(PlotsUnavailableError, match="need matplotlib"):
            new_figure()

    def test_no_rows(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="nothing to report"):
            write_report(tmp_path, [], PLAN)

    def test_rows_survive_what_fails_later(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object) -> None:
            raise RuntimeError("late")

        monkeypatch.setattr("contextpilot.evaluation.report.group_tables", fail)
        with pytest.raises(RuntimeError, match="late"):
            write_report(tmp_path, make_rows(["raw"], (10,), 2), ReportPlan(("raw",), "raw"))
        assert len(load_evaluation(tmp_path / "evaluation.json").rows) == 2

    def test_slices_that_look_alike_get_their_own_files(self, tmp_path: Path) -> None:
        rows = [
            row for source in ("a/b", "a b", "A-B") for row in make_rows(["raw"], (10,), 2, source)
        ]
        paths = write_report(tmp_path, rows, ReportPlan(("raw",), "raw"), created=CREATED)
        assert len({path.name for path in paths.figures}) == len(paths.figures) == 6

    def test_importing_loads_no_matplotlib(self) -> None:
        code = (
            "import sys, contextpilot.evaluation.report as r;"
            "print([m for m in ('matplotlib', 'torch', 'gymnasium') if m in sys.modules])"
        )
        output = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        )
        assert output.stdout.strip() == "[]"


def texts_of(figure: Any) -> list[tuple[str, Any]]:
    """Returns every text that is drawn in a figure, with its box in pixels."""
    drawn: list[Text] = []
    draw = Text.draw

    def record(self: Text, renderer: Any) -> None:
        drawn.append(self)
        draw(self, renderer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Text, "draw", record)
        figure.canvas.draw()
    shown = [text for text in drawn if text.get_text() and text.get_visible()]
    return [(text.get_text(), text.get_window_extent()) for text in shown]


class TestPlots:
    @pytest.mark.parametrize("tasks", [1, 6])
    @pytest.mark.parametrize("policies", [("raw",), ("raw", "learned"), tuple(PROFILES)[:6]])
    def test_draws_small_and_large(
        self, tmp_path: Path, policies: tuple[str, ...], tasks: int
    ) -> None:
        plan = ReportPlan(policies, "raw")
        (group,) = group_rows(make_rows(policies, tasks=tasks))
        draw_front(tmp_path / "f.png", front_of(group, plan), plan)
        draw_sensitivity(tmp_path / "s.png", group.slice, objective_lines(group, plan), plan)
        curve = horizon_curve(group, plan)
        assert (curve is None) is (tasks == 1)
        if curve is not None:
            draw_horizon(tmp_path / "h.png", curve, plan)
        assert all(size_of(path) > (500, 400) for path in tmp_path.iterdir())

    @pytest.mark.parametrize("suffix", ["", "[keep=10,trigger=0.5]"])
    def test_no_text_covers_another_or_leaves_the_figure(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
    ) -> None:
        figures: list[Any] = []
        monkeypatch.setattr(plots, "save", lambda figure, path: figures.append(figure))
        rows = [
            replace(row, policy=row.policy + suffix) for row in make_rows(horizons=(10, 20, 160))
        ]
        (group,) = group_rows([*rows, *family_rows(range(8))])
        plan = ReportPlan(
            tuple(name + suffix for name in PROFILES),
            f"raw{suffix}",
            oracle=f"oracle{suffix}",
            families={"keep_last": SETTINGS},
        )
        curve = horizon_curve(group, plan)
        assert curve is not None
        draw_front(tmp_path, front_of(group, plan), plan)
        draw_horizon(tmp_path, curve, plan)
        draw_sensitivity(tmp_path, group.slice, objective_lines(group, plan), plan)
        for figure, least in zip(figures, (25, 40, 40), strict=True):
            texts = texts_of(figure)
            assert len(texts) >= least
            for index, (name, box) in enumerate(texts):
                assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1, name
                assert figure.bbox.y0 <= box.y0 < box.y1 <= figure.bbox.y1, name
                for other, second in texts[:index]:
                    assert not box.overlaps(second), (name, other)

    def test_nothing_to_draw(self, tmp_path: Path) -> None:
        plan = ReportPlan(("absent",), "absent")
        (group,) = group_rows(make_rows(["raw"], tasks=2))
        draw_front(tmp_path / "f.png", front_of(group, plan), plan)
        draw_sensitivity(tmp_path / "s.png", group.slice, (), plan)
        assert len(list(tmp_path.iterdir())) == 2

    def test_styles_tell_policies_apart(self) -> None:
        chosen = styles(PLAN)
        assert chosen["raw"].colour == "#000000"
        assert chosen["oracle"].marker == "*"
        assert len({(s.colour, s.marker, s.line) for s in chosen.values()}) == len(chosen)
        many = styles(ReportPlan(tuple(f"p{k}" for k in range(25)), "p0"))
        assert len({(s.colour, s.line) for s in list(many.values())[:25]}) == 25


def pair(deltas: list[float], **changes: Any) -> Group:
    """Returns a group in which `p` differs from `raw` by these demand successes, task by task."""
    rows = []
    for index, delta in enumerate(deltas):
        where = {"task_id": f"t{index}", "cluster": f"t{index}"}
        rows.append(make_row(demand_success=0.9, **where))
        rows.append(make_row(policy="p", demand_success=0.9 + delta, **where, **changes))
    (group,) = group_rows(rows)
    return group


class TestReading:
    plan = ReportPlan(("raw", "p"), "raw")

    @pytest.mark.parametrize(
        ("deltas", "expected"),
        [
            ([-0.2, -0.1] * 10, "worse"),
            ([0.05, 0.1] * 10, "better"),
            ([0.001, 0.002] * 10, "equal"),
            ([0.0] * 20, "same"),
            ([-0.3, 0.1, 0.1, 0.1] * 5, "open"),
            ([0.05], "open"),
        ],
    )
    def test_verdict(self, deltas: list[float], expected: str) -> None:
        group = pair(deltas)
        assert reading.verdict(group, "p", self.plan, demand_success, 0.005) == expected
        assert reading.verdict(group, "q", self.plan, demand_success, 0.005) is None
        assert reading.overview([group], self.plan)[1] == ["p", f"{expected} / same"]

    def test_task_effect_says_who_loses(self) -> None:
        sentences = reading.read_task_effect(pair([-0.2, -0.1] * 10), self.plan)
        assert sentences[0].startswith("Lower demand success than `raw`: `p` (-15.0 points [-1")
        assert sentences[1].startswith("The same objective in every episode: `p`")

    def test_coverage(self) -> None:
        rows = make_rows(["raw"], tasks=3) + make_rows(["learned"], tasks=2)
        (group,) = group_rows(rows)
        plan = ReportPlan(("raw", "learned", "absent"), "raw")
        partial, absent = reading.read_coverage(group, plan)
        assert partial.startswith("`learned` has rows for 8 episodes, 8 of them among the 12")
        assert absent == "`absent` was not evaluated here."
        assert reading.read_coverage(group, ReportPlan(("raw",), "raw")) == []

    def test_efficiency(self) -> None:
        dear = {"billed_tokens": 1300.0, "overflows": 1}
        group = pair([0.0, 0.0, 0.0], **dear)
        matched = group_tables(group, self.plan)[3]
        assert reading.read_efficiency(group, self.plan, matched) == [
            "At the demand success of `raw`, `p` is the cheapest but for the oracle, at 1.300 of "
            "`raw`'s bill.",
            "`p` is billed more than raw: 130.0% of it.",
            "`p` overflowed the budget in 3 of 3 episodes.",
            "The fixed prefix, which no edit can save, is 10.0% of raw.",
        ]

    def test_efficiency_without_a_match(self) -> None:
        group = pair([-0.5, -0.5])
        matched = group_tables(group, self.plan)[3]
        first = reading.read_efficiency(group, self.plan, matched)[0]
        assert first == "But for the oracle, nothing else reaches the demand success of `raw`."

    def test_edit_quality_names_the_edit(self) -> None:
        (group,) = group_rows(make_rows(["raw", "rolling_summary"], tasks=5))
        plan = ReportPlan(("raw", "rolling_summary"), "raw")
        (sentence,) = reading.read_edit_quality(group, plan)
        missed = sum(row.silent_misses for row in group.of("rolling_summary"))
        assert f"missed {missed} facts silently in 20 episodes" in sentence
        assert f"removed by summarize ({missed})" in sentence
        assert f"seen in their place: summary ({missed})" in sentence
        assert reading.read_edit_quality(group, ReportPlan(("raw",), "raw")) == [
            "No policy missed a fact silently."
        ]

    def test_misses_without_a_trace(self) -> None:
        group = pair([0.0], silent_misses=1)
        (sentence,) = reading.read_edit_quality(group, self.plan)
        assert sentence == (
            "`p` missed 1 fact silently in 1 episodes: the rows do not say which edit had removed "
            "them."
        )

    def test_horizon_explains_the_bend(self) -> None:
        (group,) = group_rows(make_rows(["raw", "drop_oldest"]))
        plan = ReportPlan(("raw", "drop_oldest"), "raw")
        curve = horizon_curve(group, plan)
        assert curve is not None
        bend, straight = reading.read_horizon(group, plan, curve)
        assert bend.startswith("`drop_oldest` bends between 20 and 40 requests: task success falls")
        assert "facts were removed by drop" in bend
        assert "The edit came 23 requests (median) before the need." in bend
        assert straight == "No drop between neighbours is clear of 0 for `raw`."

    def test_sensitivity_tells_when_the_price_decides(self) -> None:
        changes = {"billed_tokens": 400.0, "billed_without_prefix_tokens": 300.0}
        misses = {"silent_misses": 1, "miss_cost_tokens": 60.0}
        group = pair([0.0] * 4, **changes, **misses)
        first, second = reading.read_sensitivity(
            group, self.plan, sensitivity_table(group, self.plan)
        )
        assert first == (
            "Best mean objective, the oracle aside, at miss prices 1, 5, 20: `p`, `p`, `raw`."
        )
        assert second == (
            "`p` against `raw` depends on the price: better, better, worse at 1, 5, 20."
        )
