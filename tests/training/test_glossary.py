from __future__ import annotations

import re
from pathlib import Path

import pytest

from contextpilot.errors import ConfigurationError
from contextpilot.rewards.terms import TERMS
from contextpilot.training.glossary import ENTRIES, OPS, describe, table

ROOT = Path(__file__).resolve().parent.parent.parent


def test_a_pattern_stands_for_all_its_names() -> None:
    (entry,) = (entry for entry in ENTRIES if entry.pattern == "reward/<term>/<op>")
    assert len(list(entry.keys())) == len(TERMS) * len(OPS)
    assert describe("reward/key_info/fold") is entry
    assert describe("reward/key_info/raw").pattern == "reward/<term>/raw"
    assert describe("actions/keep").unit == "share"


def test_no_metric_is_explained_twice() -> None:
    keys = [key for entry in ENTRIES for key in entry.keys()]  # noqa: SIM118
    assert len(set(keys)) == len(keys)
    assert not [key for key in keys if "<" in key]


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("episode/retrun", "Did you mean 'episode/return'"),
        ("reward/demnd/raw", "Did you mean 'reward/demand/raw'"),
        ("reward/<term>/raw", "Did you mean"),
        ("zzz", r"Received 'zzz'\. Explain new ones in"),
    ],
)
def test_an_unknown_metric_is_an_error(key: str, hint: str) -> None:
    with pytest.raises(ConfigurationError, match=hint):
        describe(key)


def test_every_metric_that_training_names_is_explained() -> None:
    groups = "|".join(sorted({entry.pattern.split("/")[0] for entry in ENTRIES}))
    named = set()
    for path in (ROOT / "contextpilot" / "training").glob("*.py"):
        if path.name != "glossary.py":
            named |= set(re.findall(rf'"((?:{groups})/[a-z_/]+)"', path.read_text("utf-8")))
    assert len(named) > 20
    for key in sorted(named):
        describe(key)


def test_every_metric_that_is_explained_is_named_by_training() -> None:
    sources = (ROOT / "contextpilot" / "training").glob("*.py")
    text = "".join(path.read_text("utf-8") for path in sources if path.name != "glossary.py")
    outcomes = r"(episode|evaluation)(?=/)"  # both are named by one function, under a prefix
    for entry in ENTRIES:
        pattern = entry.pattern.replace("<term>", "{term}").replace("<op>", "{op.name.lower()}")
        prefixed = re.sub(outcomes, "{prefix}", pattern)
        assert f'"{pattern}"' in text or f'"{prefixed}"' in text, pattern


def test_the_table_for_readers_is_up_to_date() -> None:
    assert (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8") == table()
