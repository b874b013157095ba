"""The summary keeps what the goal asks for, and the structure it found."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contextpilot.errors import SummarizerError
from contextpilot.summarizers import SourceText, StructureSummarizer, SummaryRequest
from contextpilot.summarizers.scoring import score_line
from contextpilot.tokenizers import EstimateTokenizer

TOKENIZER = EstimateTokenizer()
FILLER = [
    "The meeting room on the second floor is usually free in the afternoon.",
    "Several teams prefer to plan their work in the first days of a month.",
    "A walk around the lake takes most visitors less than two hours.",
    "The cafeteria changes its menu with the seasons of the year.",
    "Colleagues often share photographs of their holidays in the hall.",
]
FILLER_ZH = ["会议室一般在下午空闲。", "食堂的菜单随季节变化。", "同事们常在大厅里聊天。"]


def _summary(text: str, goal: str, ratio: float = 0.25, kind: str = "result") -> str:
    limit = max(24, int(TOKENIZER.count(text) * ratio))
    request = SummaryRequest((SourceText("s3", text, kind),), goal, limit)
    return StructureSummarizer(TOKENIZER).summarize(request)


def _among(facts: list[str], filler: list[str], times: int) -> str:
    lines = filler * times
    step = len(lines) // (len(facts) + 1)
    for number, fact in enumerate(facts, start=1):
        lines.insert(number * step + number - 1, fact)
    return " ".join(f"{line[:-1]} {i}{line[-1]}" if line in filler else line
                    for i, line in enumerate(lines))  # fmt: skip


def test_sentences_about_the_goal_are_kept_in_order_and_verbatim() -> None:
    facts = [
        "The Falcon contract is worth 48,200 dollars a year.",
        "Nobody may restart Falcon before the backup has finished.",
    ]
    summary = _summary(_among(facts, FILLER, 6), "What does the Falcon contract cost?")
    lines = summary.splitlines()
    assert lines[0] == "[summary of s3]"
    assert [line for line in lines if line in facts] == facts


def test_a_goal_in_chinese_finds_chinese_sentences() -> None:
    facts = ["星河项目的合同金额为48200元。", "备份完成之前不得重启星河服务器。"]
    summary = _summary(_among(facts, FILLER_ZH, 10), "星河项目的合同金额是多少？")
    assert all(fact in summary for fact in facts)


def test_a_latin_word_among_chinese_characters_is_found() -> None:
    line = "午后有人停用nginx并换了端口。"
    assert score_line(line, "nginx") > score_line(line, "haproxy") + 14


def test_chinese_errors_and_negations_weigh_as_much_as_english_ones() -> None:
    plain, plain_zh = score_line("it stays", ""), score_line("照旧", "")
    error, negation = score_line("it error", "") - plain, score_line("it never", "") - plain
    assert score_line("出现错误", "") - plain_zh == pytest.approx(error)
    assert score_line("从未照旧", "") - plain_zh == pytest.approx(negation)
    assert error > negation > 0


def test_function_words_of_a_chinese_goal_do_not_dilute_it() -> None:
    line = "星河合同金额为48200元。"
    plain = score_line(line, "星河合同金额")
    assert score_line(line, "请你把它们的星河合同金额给我") == plain
    assert score_line(line, "星河") > score_line(line, "") + 14


def test_chinese_text_is_not_cheaper_than_the_path_beside_it() -> None:
    # Of equal size in tokens, but the first has half as many characters again. Only it has digits.
    lines = ["星河的转储在/fjord/juniper-8351.core", "星河的转储由值班同事在午后挪到了新建机房"]
    costs = [TOKENIZER.count(line) for line in lines]
    text = "\n".join([lines[1], lines[0]])
    request = SummaryRequest((SourceText("s1", text, "result"),), "星河的转储", 24)
    assert lines[0] in StructureSummarizer(TOKENIZER).summarize(request)
    assert max(costs) - min(costs) <= 2


def test_without_a_goal_facts_win_over_chat() -> None:
    facts = ["In conclusion, the root cause was a full disk on host db-7."]
    assert facts[0] in _summary(_among(facts, FILLER, 6), "")


def test_an_answer_after_the_sentence_that_matches_is_kept() -> None:
    pair = "Falcon was discussed at length. It moves to the Porto site."
    text = " ".join([*FILLER * 4, pair, *reversed(FILLER * 4)])
    assert "It moves to the Porto site." in _summary(text, "Where does Falcon go?")


def test_errors_are_kept_and_repetitive_lines_thinned_out() -> None:
    log = [f"2031-04-17 08:{i // 60:02}:{i % 60:02} INFO heartbeat {i} ok" for i in range(200)]
    log[120] = "2031-04-17 08:02:00 ERROR cannot write /var/data/q7.db: no space left"
    log[121] = "Caused by: java.io.IOException: quota exceeded"
    summary = _summary("\n".join(log), "find out why the job failed", 0.1)
    assert log[120] in summary
    assert log[121] in summary


def test_json_becomes_a_schema_and_rows_with_the_wanted_one() -> None:
    rows = [{"sku": f"K-{i}", "name": f"part {i}", "price": f"{i}.50"} for i in range(80)]
    rows[57]["name"] = "walnut shelf"
    summary = _summary(json.dumps(rows), "What does the walnut shelf cost?", 0.1)
    assert "(sku, name, price)" in summary
    assert "K-57, walnut shelf, 57.50" in summary
    assert 2 < len(summary.splitlines()) < 30


def test_a_table_keeps_its_header_above_the_rows() -> None:
    table = "id,name,price\n" + "\n".join(f"{i},item {i},{i}.25" for i in range(60))
    lines = _summary(table, "price of item 41", 0.2).splitlines()
    assert lines[1] == "id,name,price"
    assert "41,item 41,41.25" in lines


def test_exact_repetitions_are_kept_once() -> None:
    sentence = "The Falcon contract is worth 48,200 dollars a year."
    assert _summary(" ".join([sentence] * 30), "Falcon", 0.5).count(sentence) == 1


def test_each_of_several_sources_is_labelled_once() -> None:
    sources = (
        SourceText("s3", "The red key opens the north door. It is old.", "result"),
        SourceText("s8", "The blue key opens the south door. It is new.", "turn"),
    )
    summary = StructureSummarizer(TOKENIZER).summarize(SummaryRequest(sources, "key", 200))
    assert summary.splitlines() == [
        "[summary of s3, s8]",
        "s3: The red key opens the north door.",
        "It is old.",
        "s8: The blue key opens the south door.",
        "It is new.",
    ]


def test_an_earlier_summary_is_consumed_and_its_sources_are_named() -> None:
    sources = (
        SourceText("s9", "[summary of s1, s2]\nThe code is K-77.", "summary"),
        SourceText("s4", "[summary of s5]\nQuoted, not ours.", "result"),
    )
    summary = StructureSummarizer(TOKENIZER).summarize(SummaryRequest(sources, "", 200))
    assert summary.splitlines()[:2] == ["[summary of s9, s4, s1, s2]", "s9: The code is K-77."]
    assert "[summary of s5]" in summary


def test_what_an_earlier_summary_stood_for_gives_way_to_a_small_budget() -> None:
    ids = ", ".join(f"s{i}" for i in range(100, 140))
    source = SourceText("s9", f"[summary of {ids}]\nThe code is K-77.", "summary")
    summary = StructureSummarizer(TOKENIZER).summarize(SummaryRequest((source,), "", 30))
    assert summary == "[summary of s9]\nThe code is K-77."


def test_one_line_that_is_too_long_is_cut() -> None:
    request = SummaryRequest((SourceText("s1", "word " * 60, "result"),), "", 24)
    summary = StructureSummarizer(TOKENIZER).summarize(request)
    assert summary.startswith("[summary of s1]\nword word")
    assert TOKENIZER.count(summary) <= 24


def test_text_without_words_is_a_failure() -> None:
    request = SummaryRequest((SourceText("s1", "---\n***", "result"),), "", 100)
    with pytest.raises(SummarizerError, match="nothing to summarize"):
        StructureSummarizer(TOKENIZER).summarize(request)


def test_it_does_not_depend_on_the_hash_seed() -> None:
    program = (
        "from contextpilot.summarizers import *\n"
        "from contextpilot.tokenizers import EstimateTokenizer\n"
        "text = ' '.join(f'Group {i % 7} met unit {i % 5} near hall {i % 3}.' for i in range(90))\n"
        "request = SummaryRequest((SourceText('s1', text, 'result'),), 'unit group hall', 150)\n"
        "print(StructureSummarizer(EstimateTokenizer()).summarize(request))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1


def test_answers_survive_in_real_paragraphs_far_more_often_than_by_truncation() -> None:
    folder = os.environ.get("CONTEXTPILOT_DATA")
    if not folder:
        pytest.skip("CONTEXTPILOT_DATA is not set")
    tasks = json.loads((Path(folder) / "multihop" / "hotpotqa_train.json").read_text())
    kept = cut = asked = 0
    for task in tasks:
        text = "\n\n".join(f"# {title}\n{''.join(lines)}" for title, lines in task["context"])
        if len(task["answer"]) < 4 or task["answer"] not in text:
            continue
        asked += 1
        kept += task["answer"] in _summary(text, task["question"])
        cut += task["answer"] in TOKENIZER.truncate(text, TOKENIZER.count(text) // 4)
    assert asked > 40
    assert kept / asked > 0.65
    assert kept > 1.5 * cut
