"""Readers on a real endpoint (a loopback server) and on a real, if tiny, causal model."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from contextpilot.errors import ReaderError
from contextpilot.readers.chat import ChatReader
from contextpilot.readers.local import LocalReader

ASKED = [{"role": "user", "content": "one two"}]


class Endpoint(BaseHTTPRequestHandler):
    seen: list[Any]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.path, self.headers["Authorization"], body))
        known = body["model"] == "m"
        reply: dict[str, Any] = {"error": {"message": "no such model"}}
        if known:
            message = {"role": "assistant", "content": "It is 12."}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
            reply["choices"] = [choice]
        data = json.dumps(reply).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    Endpoint.seen = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_endpoint_is_asked_what_was_said(url: str) -> None:
    reader = pickle.loads(pickle.dumps(ChatReader("m", url)))
    assert reader.answer(ASKED) == "It is 12."
    ((path, _, body),) = Endpoint.seen
    assert path == "/v1/chat/completions"
    assert body["messages"] == ASKED
    assert body["temperature"] == 0


def test_a_refusal_names_endpoint_model_and_remedy(url: str) -> None:
    with pytest.raises(ReaderError, match=r"127\.0\.0\.1.*'other'.*OPENAI_API_KEY"):
        ChatReader("other", url, retries=0).answer(ASKED)


def test_nobody_there_is_named() -> None:
    reader = ChatReader("m", "http://127.0.0.1:9/v1", retries=0, timeout_seconds=2)
    with pytest.raises(ReaderError, match="did not answer"):
        reader.answer(ASKED)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model")
    words = ["<s>", "one", "two", "three", "user", "assistant", ":"]
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, "<s>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<s>").save_pretrained(path)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=16, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=2, max_position_embeddings=64, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(path)
    return str(path)


def test_a_local_model_answers_the_same_each_time(folder: str) -> None:
    reader = pickle.loads(pickle.dumps(LocalReader(folder, max_tokens=8)))
    answer = reader.answer(ASKED)
    assert answer == LocalReader(folder, max_tokens=8).answer(ASKED)
    assert set(answer.split()) <= {"one", "two", "three", "user", "assistant", ":"}


def test_a_context_that_does_not_fit_is_refused(folder: str) -> None:
    with pytest.raises(ReaderError, match=r"takes 64\. Lower the window"):
        LocalReader(folder).answer([{"role": "user", "content": "one " * 80}])


def test_no_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReaderError, match="no causal language model"):
        LocalReader(str(tmp_path)).answer(ASKED)
