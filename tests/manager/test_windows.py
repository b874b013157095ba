"""Windows by model name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from contextpilot.core.budget import TokenBudget
from contextpilot.errors import ConfigurationError
from contextpilot.manager.windows import WINDOWS, context_window


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o", 128_000),
        ("gpt-4o-mini-2024-07-18", 128_000),
        ("openai/gpt-4.1-nano", 1_047_576),
        ("GPT-4-0613", 8_192),
        ("gpt-4-0125-preview", 128_000),
        ("gpt-5-mini", 400_000),
        ("gpt-5-chat-latest", 128_000),
        ("ft:gpt-4o-2024-08-06:org::abc", 128_000),
        ("o3-mini", 200_000),
        ("o1-mini", 128_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("claude-3-5-sonnet@20240620", 200_000),
        ("anthropic/claude-3.7-sonnet", 200_000),
        ("us.anthropic.claude-3-5-sonnet-20240620-v1:0", 200_000),
        ("bedrock/meta.llama3-1-8b-instruct-v1:0", 131_072),
        ("anthropic/claude-opus-4.6", 1_000_000),
        ("claude-opus-4-5-20251101", 200_000),
        ("us.anthropic.claude-sonnet-4-6", 1_000_000),
        ("claude-2.1", 200_000),
        ("claude-2.0", 100_000),
        ("models/gemini-1.5-pro-002", 2_097_152),
        ("vertex_ai/gemini-2.5-flash-lite", 1_048_576),
        ("Qwen/Qwen3-8B", 32_768),
        ("Qwen/Qwen3-235B-A22B-Instruct-2507", 262_144),
        ("Qwen/Qwen2.5-7B-Instruct-1M", 1_010_000),
        ("Qwen/Qwen2.5-7B-Instruct", 32_768),
        ("meta-llama/Meta-Llama-3-8B-Instruct", 8_192),
        ("meta-llama/Llama-3.1-8B-Instruct", 131_072),
        ("ollama/llama3.1:8b", 131_072),
        ("mistral-large-latest", 131_072),
        ("mistral-large-2402", 32_768),
        ("open-mixtral-8x22b-2404", 65_536),
        ("deepseek/deepseek-chat:free", 131_072),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", 131_072),
    ],
)
def test_well_known_names(model: str, tokens: int) -> None:
    assert context_window(model) == tokens


@pytest.mark.parametrize("model", ["gpt-5.9", "gpt-40", "o11", "gpt", "", "/", "my-deployment"])
def test_a_beginning_ends_where_a_word_ends(model: str) -> None:
    with pytest.raises(ConfigurationError, match=f"Received {model!r}"):
        context_window(model)


def test_the_error_names_near_models_and_the_way_out() -> None:
    with pytest.raises(ConfigurationError) as caught:
        context_window("openai/gtp-4o")
    assert "Did you mean 'gpt-4o'" in str(caught.value)
    assert "overrides={'openai/gtp-4o': tokens}" in str(caught.value)
    with pytest.raises(ConfigurationError) as caught:
        context_window("xyz")
    assert "Did you mean" not in str(caught.value)


def test_overrides_go_before_the_table() -> None:
    own = {"My-Deployment": 50_000, "claude-sonnet-4": 1_000_000, "vllm/Qwen/Qwen3-8B": 40_960}
    assert context_window("ollama/llama3.1:8b", {"llama3.1": 4_096}) == 4_096
    assert context_window("azure/my-deployment", own) == 50_000
    assert context_window("claude-sonnet-4-5-20250929", own) == 1_000_000
    assert context_window("vllm/Qwen/Qwen3-8B", own) == 40_960
    assert context_window("Qwen/Qwen3-8B", own) == 32_768
    # an override of a family goes before the table's longer names
    assert context_window("o1-mini", {"o1": 7}) == 7


@pytest.mark.parametrize("tokens", [0, -1, 1.5, True, None])
def test_an_override_must_be_tokens(tokens: int) -> None:
    with pytest.raises(ConfigurationError, match="positive number of tokens"):
        context_window("gpt-4o", {"other": tokens})


@examples(100)
@given(
    st.sampled_from(sorted(WINDOWS)),
    st.sampled_from(["", "openai/", "openrouter/x/", "Models/"]),
    st.sampled_from(["", "-20991231", "@20991231", ":free", "-2099-12-31", "_x"]),
)
def test_every_entry_is_found_with_any_provider_and_date(
    name: str, provider: str, suffix: str
) -> None:
    assert context_window(provider + name.upper() + suffix) == WINDOWS[name]
    assert TokenBudget(WINDOWS[name], 1024).input_limit > 0
