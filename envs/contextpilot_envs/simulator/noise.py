"""Common random numbers: the same fact at the same request has the same luck under any policy."""

from __future__ import annotations

from hashlib import blake2b


def uniform(seed: int, task_id: str, request: int, what: str) -> float:
    """Returns a number in [0, 1) that depends on nothing but its arguments."""
    key = f"{seed}|{task_id}|{request}|{what}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") / 2.0**64
