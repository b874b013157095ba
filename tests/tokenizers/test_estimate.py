"""The estimate: near real counts, exact in its arithmetic, and quiet."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextpilot.tokenizers import estimate
from contextpilot.tokenizers.estimate import EstimateTokenizer

SAMPLES = {
    "english": (
        "The ferry leaves the harbour at dawn and reaches the northern island before noon. "
        "Passengers who booked a cabin may board the evening before; everybody else waits in the "
        "hall, where the kiosk sells coffee until midnight. Nobody should forget to bring a valid "
        "ticket, since the guards at the gate have been told to turn people away without one."
    ),
    "code": (
        "def retry(call, attempts=5, pause=0.5):\n"
        '    """Calls until it works, waiting longer each time."""\n'
        "    for attempt in range(attempts):\n"
        "        try:\n"
        "            return call()\n"
        "        except ConnectionError as error:\n"
        "            if attempt == attempts - 1:\n"
        "                raise\n"
        '            logger.warning("attempt %d failed: %s", attempt, error)\n'
        "            time.sleep(pause * 2**attempt)\n"
    ),
    "json": (
        '{"order_id": "A-20931", "customer": {"name": "Ines Duarte", "tier": "gold"}, "items": '
        '[{"sku": "TT-118", "quantity": 3, "price": 18.5}, {"sku": "KX-007", "quantity": 12, '
        '"price": 4.25}], "paid": true, "shipped_at": null, "total": 106.5}'
    ),
    "log": (
        "2031-04-17 08:12:44,917 INFO [worker-3] scheduler.Queue: task 88213 accepted in 14 ms\n"
        "2031-04-17 08:12:45,002 WARN [worker-1] net.Client: host db-7:5432 slow, 2180 ms\n"
        "2031-04-17 08:12:47,611 ERROR [worker-1] net.Client: timeout after 3 retries, task 88213\n"
    ),
    "chinese": (
        "渡轮在黎明时分离开港口，中午之前抵达北边的岛屿。预订了舱位的旅客可以在前一天晚上登船，其他人则在大厅里等候，"
        "那里的小店一直营业到午夜。请不要忘记携带有效的船票，因为门口的工作人员不会让没有票的人通过。"
    ),
    "japanese": (
        "フェリーは夜明けに港を出て、昼前に北の島に着きます。船室を予約したお客様は前の晩から乗船できますが、"
        "ほかの方は売店のある待合室でお待ちください。切符を忘れないようにしてください。"
    ),
    "korean": (
        "여객선은 새벽에 항구를 떠나 정오 전에 북쪽 섬에 도착합니다. 객실을 예약한 승객은 "
        "전날 저녁에 탈 수 있고, 나머지 승객은 매점이 있는 대합실에서 기다립니다. "
        "표를 잊지 말고 가져오세요."
    ),
    "russian": (
        "Паром уходит из гавани на рассвете и приходит на северный остров до полудня. Пассажиры, "
        "которые заказали каюту, могут подняться на борт накануне вечером, остальные ждут в зале."
    ),
    "arabic": (
        "تغادر العبارة الميناء عند الفجر وتصل إلى الجزيرة الشمالية قبل الظهر. يمكن للركاب الذين "
        "حجزوا مقصورة الصعود مساء اليوم السابق، أما الآخرون فينتظرون في القاعة."
    ),
    "emoji": "Done! 🎉🎉 Build is green ✅ and the rocket is up 🚀🚀🚀 — see you soon 👋😀",
}

COUNTS = {
    "english": 68.0,
    "code": 87.0,
    "json": 102.0,
    "log": 123.0,
    "chinese": 64.0,
    "japanese": 58.0,
    "korean": 79.0,
    "russian": 65.0,
    "arabic": 51.0,
    "emoji": 28.0,
}
"""Tokens by a vocabulary of 152k, the mean of single digits and of digits in threes."""

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=80)


@pytest.mark.parametrize("script", SAMPLES)
def test_is_near_what_a_real_vocabulary_counts(script: str) -> None:
    counted = EstimateTokenizer().count(SAMPLES[script])
    assert counted == pytest.approx(COUNTS[script], rel=0.25)


def test_english_is_about_four_characters_a_token_and_data_is_denser() -> None:
    density = {
        script: EstimateTokenizer().count(text) / len(text) for script, text in SAMPLES.items()
    }
    assert 1 / 5 < density["english"] < 1 / 4
    assert density["english"] < density["code"] < density["json"] < density["log"]


@pytest.mark.parametrize("character", ["价", "格", "か", "。"])
def test_a_chinese_or_japanese_character_is_most_of_a_token(character: str) -> None:
    assert 0.65 <= EstimateTokenizer().count(character * 1000) / 1000 <= 0.9


@given(ANY_TEXT, ANY_TEXT)
def test_adds_up_within_one_token(left: str, right: str) -> None:
    count = EstimateTokenizer().count
    apart = count(left) + count(right)
    assert apart - 1 <= count(left + right) <= apart
    assert count(left + right) >= max(count(left), count(right))


@given(st.characters(exclude_categories=()))
def test_every_character_costs_something_and_none_is_extreme(character: str) -> None:
    hundred = EstimateTokenizer().count(character * 100)
    assert 5 <= hundred <= 150


def test_a_very_long_text_is_cut_where_a_short_one_is() -> None:
    tokenizer = EstimateTokenizer()
    text = "word, 价格 👋\n" * 50_000
    cut = tokenizer.truncate(text, 100)
    assert cut == tokenizer.truncate(text[:2000], 100)
    assert tokenizer.count(cut) == 100


def test_warns_once_per_process_and_only_when_asked(caplog: pytest.LogCaptureFixture) -> None:
    estimate._warn_once.cache_clear()
    with caplog.at_level(logging.WARNING, logger=estimate.__name__):
        EstimateTokenizer()
        assert caplog.messages == []
        EstimateTokenizer(warn=True)
        EstimateTokenizer(warn=True)
    assert len(caplog.messages) == 1
    assert "TiktokenTokenizer" in caplog.messages[0]
