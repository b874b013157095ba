"""What each edit does, on contexts small enough to follow; and what a summarizer cannot do."""

import pytest
from tiny_tasks import (
    chain_task,
    document_segment,
    episode_at,
    exchange,
    goal_segment,
    stream_task,
    user_segment,
    words,
)

from contextpilot.core.edit import (
    Drop,
    Expire,
    Fold,
    Op,
    Outcome,
    Placement,
    Position,
    Reload,
    Reorder,
    Summarize,
)
from contextpilot.core.segment import Form, Kind, Role, Trust
from contextpilot.edits.undo import undo
from contextpilot.errors import ArchiveError, IllegalEditError, SummarizerError
from contextpilot.summarizers.base import SummaryRequest


class Answer:
    """A summarizer that always says the same, or fails."""

    name = "answer"

    def __init__(self, text: str | None) -> None:
        self.text, self.requests = text, []

    def summarize(self, request: SummaryRequest) -> str:
        self.requests.append(request)
        if self.text is None:
            raise SummarizerError("the model is down")
        return self.text


def order(episode) -> list[int]:
    context = episode.context
    return context.columns.order[: context.length].tolist()


def test_a_fold_leaves_a_stub_that_names_the_segment():
    episode = episode_at(chain_task(6), 4)
    record = episode.edit(Fold((2, 4)), "old")
    context = episode.context
    for index, name in ((2, "r0"), (4, "r1")):
        text = context.text(index)
        assert context.form(index) == Form.STUB
        assert text.startswith(f"[folded {name}:")
        assert "\n" not in text
    assert (record.targets, record.params) == (("r0", "r1"), {"form": "stub"})
    assert record.break_position == 2
    assert record.after_tokens == context.total < record.before_tokens
    assert (record.request, record.reason, record.op) == (4, "old", Op.FOLD)


def test_an_outline_shows_first_and_last_lines():
    episode = episode_at(chain_task(6), 3)
    episode.edit(Fold((2,), Form.OUTLINE))
    lines = episode.context.text(2).splitlines()
    assert lines[0].startswith("[folded r0:")
    assert (lines[1], lines[-1]) == ("w00000", "w00199")
    assert "KEY-0000-FACT" not in episode.context.text(2)


def test_a_folded_turn_keeps_its_call():
    argument = '{"path": "' + "x" * 400 + '"}'
    segments = [goal_segment(), *exchange(0, words(50), argument=argument)]
    episode = episode_at(stream_task(segments, [0, 1, 1], 5), 2)
    episode.edit(Fold((1,)))
    assert episode.context.text(1).startswith('read {"path":"[')
    assert len(episode.context.text(1)) < 200


def test_a_drop_takes_the_whole_exchange():
    episode = episode_at(chain_task(6), 3)
    record = episode.edit(Drop((4,)))
    assert list(episode.context.visible()) == [0, 1, 2, 5, 6]
    assert record.targets == ("r1",)
    assert {change.index for change in record.changes} == {3, 4}
    assert episode.services.archive.ids("chain") == ("t1", "r1")


def test_dropping_both_members_is_one_drop():
    episode = episode_at(chain_task(6), 3)
    assert len(episode.edit(Drop((4, 3))).changes) == 2


@pytest.mark.parametrize("how", [Fold((2,)), Drop((2,)), Summarize((2,), 100)])
def test_a_reload_in_place_restores_every_byte(how):
    episode = episode_at(chain_task(8), 3)
    context = episode.context
    texts = [context.text(i) for i in range(7)]
    episode.edit(how)
    assert context.text(2) != texts[2]
    for _ in range(2):
        episode.send()
    episode.edit(Reload((2,), Placement.IN_PLACE))
    assert [context.text(i) for i in range(7)] == texts
    assert [context.form(i) for i in range(7)] == [Form.FULL] * 7
    assert order(episode)[:7] == list(range(7))
    assert context.columns.reloads[2] == 1
    assert context.columns.reloaded[1] == context.columns.reloaded[2] == 5


def test_a_reload_at_the_end_shows_every_byte_once_more():
    episode = episode_at(chain_task(8), 3)
    context = episode.context
    original = context.text(2)
    episode.edit(Drop((2,)))
    for _ in range(2):
        episode.send()
    record = episode.edit(Reload((2,), Placement.AT_END))
    copy = context.native
    assert context.text(copy) == original
    assert (context.form(1), context.form(2)) == (Form.ABSENT, Form.ABSENT)
    segment = context.entries[copy].segment
    assert (segment.kind, segment.role, segment.lineage) == (Kind.COPY, Role.TOOL, ("r0",))
    assert record.output == segment.id
    assert order(episode)[-1] == copy  # in a tool loop: behind the last result
    assert not context.has_pending_break


def test_a_copy_stands_before_the_user_s_last_word():
    segments = [goal_segment(), *exchange(0, words(90)), user_segment("u1", "and now?")]
    episode = episode_at(stream_task(segments, [0, 1, 1, 4], 7), 2)
    episode.edit(Fold((2,)))
    for _ in range(2):
        episode.send()
    assert not episode.context.in_tool_loop
    episode.edit(Reload((2,), Placement.AT_END))
    assert order(episode) == [0, 1, 2, 4, 3]


def test_a_summary_in_place_keeps_the_segment_s_message():
    answer = Answer("r0: KEY-0000-FACT")
    episode = episode_at(chain_task(6), 3, summarizer=answer)
    record = episode.edit(Summarize((2,), 90))
    context = episode.context
    assert (context.form(2), context.text(2)) == (Form.SUMMARY, "r0: KEY-0000-FACT")
    assert context.entries[2].segment.role == Role.TOOL
    assert answer.requests[0].max_tokens == 90
    assert [s.id for s in answer.requests[0].sources] == ["r0"]
    assert episode.services.archive.get("chain", record.output).text == "r0: KEY-0000-FACT"
    count = episode.services.count
    assert record.summarizer_tokens == (count(context.entries[2].segment.text), count(answer.text))


def test_a_run_is_replaced_by_one_summary_where_it_began():
    episode = episode_at(chain_task(8), 4, summarizer=Answer("all of it"))
    record = episode.edit(Summarize((2, 3), 90, run=True))
    context, made = episode.context, episode.context.native
    assert list(context.visible()) == [0, made, 5, 6, 7, 8]
    assert order(episode)[:3] == [0, made, 1]
    segment = context.entries[made].segment
    assert (segment.lineage, segment.text) == (("t0", "r0", "t1", "r1"), "all of it")
    assert segment.trust == Trust.UNTRUSTED
    assert record.targets == ("t0", "r0", "t1", "r1")
    assert [context.columns.covered[i] for i in range(5)] == [-1, made, made, made, made]


def test_a_later_run_consumes_the_earlier_summary():
    episode = episode_at(chain_task(8), 4, summarizer=Answer("all of it"))
    episode.edit(Summarize((2,), 90, run=True))
    episode.send()
    first = episode.context.native
    episode.edit(Summarize((first, 4), 90, run=True))
    context = episode.context
    assert list(context.visible())[:3] == [0, first + 1, 5]
    assert context.entries[first + 1].segment.lineage == ("m17", "t0", "r0", "t1", "r1")
    assert context.columns.covered[2] == first
    assert context.columns.covered[first] == first + 1


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (None, Outcome.REJECTED_FAILED_SUMMARY),
        ("", Outcome.REJECTED_EMPTY_SUMMARY),
        (" \n\t", Outcome.REJECTED_EMPTY_SUMMARY),
        (words(2000), Outcome.REJECTED_INFLATED),
    ],
)
@pytest.mark.parametrize("run", [False, True])
def test_an_unusable_summary_replaces_nothing_and_is_recorded(text, outcome, run):
    episode = episode_at(chain_task(6), 3, summarizer=Answer(text))
    context = episode.context
    before = context.snapshot()
    record = episode.edit(Summarize((2,), 100, run=run), "try")
    assert context.snapshot() == before
    assert (record.outcome, record.changes, record.output) == (outcome, (), "")
    assert record.before_tokens == record.after_tokens
    assert record.reason == "try"
    assert record.summarizer_tokens[0] > 0
    assert not episode.log.is_live(record)
    with pytest.raises(ArchiveError):
        episode.services.archive.get("chain", "r0.summary")
    with pytest.raises(IllegalEditError, match="not live"):
        undo(context, episode.log, record)


def test_a_summary_of_equal_size_is_inflated():
    task = chain_task(6)
    answer = Answer("")
    episode = episode_at(task, 3, summarizer=answer)
    answer.text = episode.context.entries[2].segment.text
    assert episode.edit(Summarize((2,), 999)).outcome == Outcome.REJECTED_INFLATED


def documents():
    segments = [goal_segment(), *(document_segment(f"d{n}", words(90, 100 * n)) for n in range(3)),
                *exchange(0, words(60))]  # fmt: skip
    return episode_at(stream_task(segments, [0, 0, 0, 0, 1, 1], 8), 2)


def test_reorder_moves_a_document_to_the_front_or_the_end():
    episode = documents()
    record = episode.edit(Reorder((3,), Position.FRONT))
    assert order(episode) == [0, 3, 1, 2, 4, 5]
    assert episode.context.break_at == record.break_position == 1
    episode.edit(Reorder((1,), Position.END))
    assert order(episode) == [0, 3, 2, 4, 5, 1]
    assert episode.context.total == record.before_tokens


def test_reorder_leaves_the_user_the_last_word():
    segments = [goal_segment(), document_segment("d0", words(90)), user_segment("u", "so?")]
    episode = episode_at(stream_task(segments, [0, 0, 1], 5), 2)
    episode.edit(Reorder((1,), Position.END))
    assert order(episode) == [0, 1, 2]


def test_moving_to_where_it_stands_breaks_no_prefix():
    episode = documents()
    episode.edit(Reorder((1,), Position.FRONT))
    assert order(episode) == [0, 1, 2, 3, 4, 5]
    assert not episode.context.has_pending_break


@pytest.mark.parametrize("index", [0, 4, 5])
def test_messages_are_never_reordered(index):
    with pytest.raises(IllegalEditError):
        documents().edit(Reorder((index,)))


def test_a_copy_may_be_reordered_and_dropped():
    episode = episode_at(chain_task(9), 3)
    episode.edit(Fold((2,)))
    for _ in range(2):
        episode.send()
    episode.edit(Reload((2,)))
    copy = episode.context.native
    episode.send()
    episode.edit(Reorder((copy,), Position.FRONT))
    assert order(episode)[:2] == [0, copy]
    episode.edit(Drop((copy,)))
    assert copy not in list(episode.context.visible())


def test_undoing_a_fold_undoes_the_later_drop_first():
    episode = episode_at(chain_task(8), 4)
    before = [episode.context.text(i) for i in episode.context.visible()]
    fold = episode.edit(Fold((2,)))
    other = episode.edit(Fold((6,)))
    drop = episode.edit(Drop((1,)))
    assert undo(episode.context, episode.log, fold) == (drop.id, fold.id)
    assert [r.undoes for r in episode.log] == [-1, -1, -1, drop.id, fold.id]
    assert episode.log.live_since(-1) == [other]
    assert episode.context.form(2) == Form.FULL
    undo(episode.context, episode.log, other)
    assert [episode.context.text(i) for i in episode.context.visible()] == before


def test_undoing_a_summary_undoes_what_was_done_to_it():
    episode = episode_at(chain_task(9), 4, summarizer=Answer("all of it"))
    run = episode.edit(Summarize((2, 4), 90, run=True))
    episode.send()
    drop = episode.edit(Drop((episode.context.native,)))
    assert undo(episode.context, episode.log, run) == (drop.id, run.id)
    assert list(episode.context.visible()) == list(range(11))
    assert set(episode.context.columns.covered[:11]) == {-1}


def test_undoing_a_reorder_undoes_later_reorders():
    episode = documents()
    first = episode.edit(Reorder((1,), Position.END))
    fold = episode.edit(Fold((2,)))
    second = episode.edit(Reorder((3,), Position.FRONT))
    assert undo(episode.context, episode.log, first) == (second.id, first.id)
    assert order(episode) == [0, 1, 2, 3, 4, 5]
    assert episode.log.live_since(-1) == [fold]


def test_undoing_a_reload_of_what_a_summary_covers_leaves_it_covered():
    episode = episode_at(chain_task(9), 4, summarizer=Answer("all of it"))
    episode.edit(Summarize((2,), 90, run=True))
    for _ in range(2):
        episode.send()
    reload = episode.edit(Reload((2,), Placement.AT_END))
    undo(episode.context, episode.log, reload)
    columns = episode.context.columns
    assert columns.covered[1] == columns.covered[2] == episode.context.native
    assert columns.reloads[2] == 0


def test_dropping_a_summary_frees_what_it_stood_for():
    episode = episode_at(chain_task(12), 4, summarizer=Answer("all of it"))
    episode.edit(Summarize((2,), 90, run=True))
    episode.send()
    columns, first = episode.context.columns, episode.context.native
    episode.edit(Summarize((first, 4), 90, run=True))
    episode.send()
    episode.send()
    covered = [1, 2, 3, 4, first]
    assert [columns.covered[i] for i in covered] == [first, first, *[first + 1] * 3]
    drop = episode.edit(Drop((first + 1,)))
    assert {change.index for change in drop.changes} == {first + 1, *covered}
    assert [columns.covered[i] for i in covered] == [-1] * 5
    reload = episode.edit(Reload((2,), Placement.IN_PLACE))
    assert [episode.context.form(i) for i in (1, 2, 3)] == [Form.FULL, Form.FULL, Form.ABSENT]
    # The summary does not come back beside an original that it stands for.
    assert undo(episode.context, episode.log, drop) == (reload.id, drop.id)
    assert [columns.covered[i] for i in covered] == [first, first, *[first + 1] * 3]
    assert [i for i in episode.context.visible() if i in (*covered, first + 1)] == [first + 1]


def test_undoing_a_mark_takes_it_off():
    episode = episode_at(chain_task(6), 3)
    record = episode.edit(Expire((2,), 2))
    assert episode.context.columns.mark[2] == 5
    assert record.before_tokens == record.after_tokens
    undo(episode.context, episode.log, record)
    assert episode.context.columns.mark[2] == -1
    assert not episode.context.has_pending_break
