"""What a segment costs."""

from contextpilot.core.segment import Kind, Part, Role, Segment, Source, Trust
from contextpilot.tokenizers import IMAGE_TOKENS, MESSAGE_TOKENS, EstimateTokenizer, segment_tokens


def _segment(*parts: Part) -> Segment:
    return Segment("s1", Role.TOOL, Kind.RESULT, parts, Source.TOOL, Trust.UNTRUSTED)


def test_text_and_framing() -> None:
    tokenizer = EstimateTokenizer()
    text = "The quick brown fox."
    assert segment_tokens(tokenizer, _segment(Part("text", text))) == (
        tokenizer.count(text) + MESSAGE_TOKENS
    )


def test_an_image_has_its_price_whatever_its_size_in_base64() -> None:
    tokenizer = EstimateTokenizer()
    image = Part("image", block={"type": "image", "source": {"data": "iVBORw0K" * 50_000}})
    assert segment_tokens(tokenizer, _segment(image, image)) == 2 * IMAGE_TOKENS + MESSAGE_TOKENS


def test_the_name_and_arguments_of_a_call_count() -> None:
    tokenizer = EstimateTokenizer()
    call = Part("call", '{"path": "a.py"}', name="read_file", call_id="c1")
    assert segment_tokens(tokenizer, _segment(call)) == (
        tokenizer.count('read_file {"path": "a.py"}') + MESSAGE_TOKENS
    )
