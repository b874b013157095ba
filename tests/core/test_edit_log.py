"""The log only grows, and knows what is still in force."""

import pytest

from contextpilot.core.edit import ChangeRow, EditRecord, Op, Outcome
from contextpilot.core.edit_log import EditLog
from contextpilot.errors import ConfigurationError

CHANGE = (3, 1, 2, -1, -1, -1000, 0, -1000, -1000, -2, -2, -2, -2)


def record(
    number: int,
    op: Op = Op.FOLD,
    *,
    rows: tuple[ChangeRow, ...] = (CHANGE,),
    undoes: int = -1,
    outcome: Outcome = Outcome.APPLIED,
) -> EditRecord:
    return EditRecord(number, 0, op, ("s3",), {}, "", 10, 5, outcome, undoes=undoes, rows=rows)


def test_records_come_back_in_order():
    log = EditLog((record(0), record(1, Op.DROP)))
    assert [r.op for r in log] == [Op.FOLD, Op.DROP]
    assert (len(log), log[1].id) == (2, 1)


def test_an_id_out_of_order_is_refused():
    log = EditLog((record(0),))
    with pytest.raises(ConfigurationError, match=r"length of its log \(1\)\. Received 2\."):
        log.append(record(2))
    assert len(log) == 1


@pytest.mark.parametrize(
    "dead",
    [
        record(0, rows=()),
        record(0, outcome=Outcome.REJECTED_INFLATED),
        record(0, undoes=0),
    ],
    ids=["changed nothing", "rejected", "is an undo"],
)
def test_what_changed_nothing_is_not_live(dead):
    assert not EditLog((dead,)).is_live(dead)


def test_an_undone_record_is_not_live_any_more():
    log = EditLog((record(0), record(1)))
    assert [r.id for r in log.live_since(-1)] == [0, 1]
    log.append(record(2, rows=(), undoes=0))
    assert [r.id for r in log.live_since(-1)] == [1]
    assert log.live_since(1) == []


def test_the_latest_operations_come_first():
    log = EditLog((record(0, Op.FOLD), record(1, Op.DROP), record(2, Op.EXPIRE)))
    assert log.last_ops(2) == [Op.EXPIRE, Op.DROP]
    assert log.last_ops(9) == [Op.EXPIRE, Op.DROP, Op.FOLD]
    assert EditLog().last_ops(4) == []


def test_a_fork_grows_on_its_own():
    log = EditLog((record(0),))
    twin = log.fork()
    twin.append(record(1, rows=(), undoes=0))
    assert (len(log), len(twin)) == (1, 2)
    assert log.is_live(log[0])
    assert not twin.is_live(twin[0])
