"""Refusals in the words of providers and servers, and errors that only sound like them."""

# ruff: noqa: E501
from __future__ import annotations

REFUSALS: tuple[tuple[str, int, int], ...] = (
    (
        "Error code: 400 - {'error': {'message': \"This model's maximum context length is 128000 tokens. However, your messages resulted in 129431 tokens. Please reduce the length of the messages.\", 'type': 'invalid_request_error', 'param': 'messages', 'code': 'context_length_exceeded'}}",
        128000,
        129431,
    ),
    (
        "Error code: 400 - {'error': {'message': \"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens (8500 in the messages, 500 in the functions). Please reduce the length of the messages or functions.\"}}",
        8192,
        9000,
    ),
    (
        "This model's maximum context length is 4097 tokens. However, you requested 5000 tokens (4000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
        4097,
        4000,
    ),
    (
        "Error code: 400 - {'error': {'message': 'Your input exceeds the context window of this model. Please adjust your input and try again.', 'type': 'invalid_request_error', 'param': 'input', 'code': 'context_length_exceeded'}}",
        0,
        0,
    ),
    (
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 305133 tokens. Please reduce the length of the messages.",
        272000,
        305133,
    ),
    (
        "Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'prompt is too long: 208310 tokens > 200000 maximum'}}",
        200000,
        208310,
    ),
    (
        "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again",
        200000,
        188240,
    ),
    (
        "Error code: 413 - {'type': 'error', 'error': {'type': 'request_too_large', 'message': 'Request exceeds the maximum size'}}",
        0,
        0,
    ),
    (
        "An error occurred (ValidationException) when calling the Converse operation: The model returned the following errors: Input is too long for requested model.",
        0,
        0,
    ),
    (
        "An error occurred (ValidationException) when calling the InvokeModel operation: Malformed input request: expected maxLength: 50000, actual: 63211, please reformat your input and try again.",
        0,
        0,
    ),
    ("ValidationException: input is too long for requested model", 0, 0),
    (
        "ValidationException: The model returned the following errors: prompt is too long: 215321 tokens > 200000 maximum",
        200000,
        215321,
    ),
    (
        "ValidationException: This model's maximum context length is 8192 tokens. Please reduce the length of the prompt",
        8192,
        0,
    ),
    (
        "ValidationException: The model returned the following errors: Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
        0,
        0,
    ),
    (
        "400 INVALID_ARGUMENT. {'error': {'code': 400, 'message': 'The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).', 'status': 'INVALID_ARGUMENT'}}",
        1048575,
        1196265,
    ),
    ("400 The input token count exceeds the maximum number of tokens allowed 1048576.", 1048576, 0),
    (
        "400 Unable to submit request because the input token count is 1050000 but model only supports up to 1048576. Reduce the input token count and try again.",
        1048576,
        1050000,
    ),
    (
        "Error code: 400 - {'object': 'error', 'message': \"This model's maximum context length is 4096 tokens. However, you requested 4500 tokens (4000 in the messages, 500 in the completion). Please reduce the length of the messages or completion.\", 'type': 'BadRequestError', 'param': None, 'code': 400}",
        4096,
        4000,
    ),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 16384. This model's maximum context length is 32768 tokens and your request has 20000 input tokens (16384 > 32768 - 20000).",
        32768,
        20000,
    ),
    (
        "This model's maximum context length is 32768 tokens. However, your request has 40123 input tokens. Please reduce the length of the input messages.",
        32768,
        40123,
    ),
    (
        "The decoder prompt (length 40123) is longer than the maximum model length of 32768. Make sure that `max_model_len` is no smaller than the number of text tokens.",
        32768,
        40123,
    ),
    (
        "You passed 40123 input tokens and requested 100 output tokens. However, the model's context length is only 32768 tokens, resulting in a maximum input length of 32668 tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value=40123)",
        32768,
        40123,
    ),
    (
        "{'error': {'code': 400, 'message': 'the request exceeds the available context size. try increasing the context size or enable context shift', 'type': 'exceed_context_size_error', 'n_prompt_tokens': 9021, 'n_ctx': 4096}}",
        4096,
        9021,
    ),
    (
        "request (9021 tokens) exceeds the available context size (4096 tokens), try increasing it",
        4096,
        9021,
    ),
    (
        "Trying to keep the first 9021 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input",
        4096,
        9021,
    ),
    ("input length exceeds maximum context length", 0, 0),
    ("prompt too long; exceeded max context length by 500 tokens", 0, 0),
    (
        "Error code: 400 - {'error': {'message': \"This model's maximum context length is 16385 tokens. However, your messages resulted in 17023 tokens. Please reduce the length of the messages.\", 'code': 'context_length_exceeded'}}",
        16385,
        17023,
    ),
    (
        "Error code: 400 - {'error': {'message': \"This endpoint's maximum context length is 131072 tokens. However, you requested about 152931 tokens (150000 of text input, 931 of tool input, 2000 in the output). Please reduce the length of either one, or use the \\\"middle-out\\\" transform to compress your prompt automatically.\", 'code': 400}}",
        131072,
        150931,
    ),
    (
        "Prompt contains 35012 tokens, too large for model with 32768 maximum context length",
        32768,
        35012,
    ),
    (
        "Prompt contains 65673 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
        65673,
    ),
    (
        "Error code: 400 - {'error': {'message': 'Please reduce the length of the messages or completion.', 'type': 'invalid_request_error', 'param': 'messages', 'code': 'context_length_exceeded'}}",
        0,
        0,
    ),
    (
        "Error code: 413 - {'error': {'message': 'Request too large for model `llama-3.1-8b-instant` in organization `org` service tier `on_demand` on tokens per minute (TPM): Limit 6000, Requested 7503, please reduce your message size and try again.', 'code': 'rate_limit_exceeded'}}",
        6000,
        7503,
    ),
    (
        "This model's maximum context length is 65536 tokens. However, you requested 73021 tokens (65021 in the messages, 8000 in the completion). Please reduce the length of the messages or completion.",
        65536,
        65021,
    ),
    (
        "too many tokens: total number of tokens in the prompt cannot exceed 128000 - received 130211. Try using a shorter prompt, or enable the truncate prompt option.",
        128000,
        130211,
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 131099 tokens.",
        131072,
        131099,
    ),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
        8193,
        9000,
    ),
    ("Input validation error: `inputs` must have less than 4095 tokens. Given: 5034", 4095, 5034),
    (
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 40000 tokens: 36000 tokens from the input messages and 4000 tokens for the completion.",
        32768,
        36000,
    ),
    (
        "The input (40123 tokens) is longer than the model's context length (32768 tokens).",
        32768,
        40123,
    ),
    ("The prompt is too long: 140000, model maximum context length: 131071", 131071, 140000),
    (
        "tokens_limit_reached Request body too large for gpt-4o model. Max size: 8000 tokens.",
        8000,
        0,
    ),
    (
        "model_max_prompt_tokens_exceeded prompt token count of 70000 exceeds the limit of 64000",
        64000,
        70000,
    ),
    ("invalid params, context window exceeds limit (2013)", 0, 0),
    ("Invalid request: Your request exceeded model token limit: 131072", 131072, 0),
    (
        "Invalid request: Your request exceeded model token limit: 262144 (requested: 270000)",
        262144,
        270000,
    ),
    (
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
        98304,
        0,
    ),
    ("Range of input length should be [1, 129024]", 129024, 0),
    ("Prompt exceeds max length", 0, 0),
    (
        "Error code: 400, with error text {'error':{'code':'1261','message':'Prompt exceeds max length'}}",
        0,
        0,
    ),
    ("Input is too long. The maximum context size is 8192 tokens", 8192, 0),
    (
        "litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - This model's maximum context length is 128000 tokens. However, your messages resulted in 200000 tokens.",
        128000,
        200000,
    ),
    (
        "Token indices sequence length is longer than the specified maximum sequence length for this model (5000 > 4096)",
        4096,
        5000,
    ),
)
"""Text, the window that it names, and the input; 0 where it names none."""

OTHERS = (
    "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.",
    "Error code: 429 - {'type': 'error', 'error': {'type': 'rate_limit_error', 'message': \"This request would exceed your organization's rate limit of 40,000 input tokens per minute.\"}}",
    "ThrottlingException: Too many tokens, please wait before trying again.",
    "max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4",
    "max_tokens is too large: 20000. This model supports at most 16384 completion tokens, whereas you provided 20000.",
    "Incorrect API key provided",
    "messages.3.content.0.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
    "Request timed out.",
    "You exceeded your current quota, please check your plan and billing details. exceed the limit",
    "Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 70 instead.",
    "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 200 instead.",
    "Invalid 'stop': maximum length is 4",
)
