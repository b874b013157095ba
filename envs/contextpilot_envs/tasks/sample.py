"""Made-up sessions of a coding agent, for everyone without recordings of their own.

A session repairs a few failing tests of an invented project: it lists, searches, reads, edits,
runs and reads again, in the wire format of a real harness. Values that tools returned early
(limits, paths, ids of runs) are passed on and quoted much later, as in real sessions.
"""

from __future__ import annotations

from random import Random
from typing import Any

from contextpilot_envs.tasks.sample_project import (
    NOUNS,
    STATES,
    VERBS,
    Constant,
    SourceFile,
    make_project,
)
from contextpilot_envs.tasks.transcripts import Transcript

_TICKETS = 4
_PASSING = "{path}::test_{verb}_{a}_{state} PASSED"


class _Session:
    """Collects messages: each `step` is one request of the agent's model."""

    def __init__(self, goal: str) -> None:
        self.messages: list[dict[str, Any]] = [{"role": "user", "content": goal}]
        self._calls = 0

    def step(self, text: str, *calls: tuple[str, dict[str, Any], str]) -> None:
        """Adds a turn that says `text` and makes calls, each given as (tool, input, result)."""
        content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        results = []
        for name, arguments, result in calls:
            self._calls += 1
            call_id = f"call_{self._calls:04d}"
            content.append({"type": "tool_use", "id": call_id, "name": name, "input": arguments})
            results.append({"type": "tool_result", "tool_use_id": call_id, "content": result})
        self.messages.append({"role": "assistant", "content": content})
        if results:
            self.messages.append({"role": "user", "content": results})


def sample_transcript(seed: int) -> Transcript:
    """Returns a session of about 60 requests in Anthropic format, the same for the same seed."""
    random = Random(seed)
    files = make_project(random)
    area = files[0].path.split("/")[1]
    goal = (
        f"{_TICKETS} tests of the {area} service fail since the last release. Find out why, repair "
        "the settings that are wrong, and tell me at the end what each of them was and is now."
    )
    session = _Session(goal)
    listing = "\n".join(sorted(file.path for file in files))
    session.step(
        "I'll look at the layout first, then at the failing tests.",
        ("Glob", {"pattern": f"src/{area}/**/*.py"}, listing),
    )
    broken = random.sample(files, _TICKETS)
    run_ids = [_repair(session, random, file, files) for file in broken]
    repaired = [
        f"- `{c.name}` in `{file.path}`: {c.wrong} before, {c.right} now (run {run_id})"
        for file, run_id in zip(broken, run_ids, strict=True)
        for c in file.constants[:1]
    ]
    session.step("All four settings are repaired:\n\n" + "\n".join(repaired))
    return Transcript(
        id=f"{seed:06d}#0",
        format="anthropic",
        messages=tuple(session.messages),
        usage=(None,) * sum(m["role"] == "assistant" for m in session.messages),
        metadata={"session": f"{seed:06d}", "file": "", "goal": goal},
        agent="sample",
    )


def _repair(session: _Session, random: Random, file: SourceFile, files: list[SourceFile]) -> str:
    """Adds the steps that repair one test, and returns the id of the run that proved it."""
    constant = file.constants[0]
    noun = file.path.rsplit("/", 1)[1].removesuffix("s.py")
    test = f"tests/test_{noun}s.py"
    run = {"command": f"python -m pytest {test} -x -q", "description": f"Test the {noun}s"}
    first_id, last_id = (f"run-{random.randrange(16**8):08x}" for _ in range(2))
    session.step(
        f"Next are the {noun}s.",
        ("Bash", run, _failure(random, file, constant, test, first_id)),
    )
    session.step(
        f"`{constant.function}` refuses too early. Where does its limit come from?",
        ("Grep", {"pattern": constant.function, "path": "src"}, _matches(random, files, constant)),
    )
    session.step("", ("Read", {"file_path": file.path}, file.numbered()))
    _look_around(session, random, file, files)
    place = file.line_of(f"{constant.name} = ")
    old, new = f"{constant.name} = {constant.wrong}", f"{constant.name} = {constant.right}"
    session.step(
        f"The contract of this area asks for {constant.right}; `{constant.name}` is "
        f"{constant.wrong}.",
        (
            "Edit",
            {"file_path": file.path, "old_string": old, "new_string": new},
            _edited(file, place, new),
        ),
    )
    session.step(
        "",
        ("Read", {"file_path": file.path, "offset": place + 1, "limit": 40},
         file.numbered(place, 40)),
    )  # fmt: skip
    session.step("", ("Bash", run, _success(random, test, last_id)))
    session.step(
        f"Run {last_id} is green where {first_id} failed; line {place + 1} was the cause.",
        ("Bash", {"command": f"ci annotate {last_id} --replaces {first_id}"}, "annotated"),
    )
    return last_id


def _look_around(
    session: _Session, random: Random, file: SourceFile, files: list[SourceFile]
) -> None:
    """Adds reads and searches of other files, some of which matter later."""
    for other in random.sample([f for f in files if f is not file], 4):
        other_constant = random.choice(other.constants)
        session.step(
            random.choice(("", f"`{other.path}` follows the same pattern, so I compare.")),
            ("Read", {"file_path": other.path}, other.numbered()),
        )
        if random.random() < 0.5:
            session.step(
                f"Who else depends on `{other_constant.name}`?",
                ("Grep", {"pattern": other_constant.name, "path": "src"},
                 _matches(random, files, other_constant)),
            )  # fmt: skip
    commit, *older = (f"{random.randrange(16**10):010x}" for _ in range(random.randint(8, 30)))
    log = [f"{each} {random.choice(VERBS)} {random.choice(NOUNS)}s" for each in older]
    session.step(
        "The history should say when the limit changed.",
        ("Bash", {"command": f"git log --oneline -- {file.path}"},
         "\n".join([f"{commit} raise limits for the audit", *log])),
    )  # fmt: skip
    session.step("", ("Bash", {"command": f"git show {commit}"}, _commit(random, file, commit)))


def _commit(random: Random, file: SourceFile, commit: str) -> str:
    constant = file.constants[0]
    start = random.randint(8, len(file.lines) - 12)
    context = "\n".join(f"  {line}" for line in file.lines[start : start + 10])
    return (
        f"commit {commit}\n\n    raise limits for the audit\n\n    The contract says that "
        f"{constant.name} must be {constant.right}.\n\n--- a/{file.path}\n+++ b/{file.path}\n"
        f"@@ -{start},10 +{start},11 @@\n{context}\n+ # reviewed"
    )


def _matches(random: Random, files: list[SourceFile], constant: Constant) -> str:
    found = [
        f"{file.path}:{number + 1}:{line}"
        for file in files
        for number, line in enumerate(file.lines)
        if constant.function in line or (constant.name and constant.name in line)
    ]
    uses = [
        f"src/jobs/{random.choice(VERBS)}_{random.choice(NOUNS)}.py:{random.randint(10, 400)}:"
        f"    {constant.function}({random.choice(NOUNS)}, batch={random.randint(100, 999)})"
        for _ in range(random.randint(3, 12))
    ]
    return "\n".join(found + uses)


def _failure(random: Random, file: SourceFile, constant: Constant, test: str, run_id: str) -> str:
    place = file.line_of(f"> {constant.name}") + 1
    passed = "\n".join(_passing(random, test) for _ in range(random.randint(10, 60)))
    size = constant.wrong + random.randint(1, 90)
    return (
        f"{run_id}\n{passed}\n{test}::test_{constant.function} FAILED\n\n"
        f"{file.path}:{place}: in {constant.function}\n    {file.lines[place - 1].strip()}\n"
        f"E   LimitError: {size} is more than {constant.wrong}\n"
        f"1 failed in {random.randint(100, 999) / 100}s"
    )


def _success(random: Random, test: str, run_id: str) -> str:
    passed = [_passing(random, test) for _ in range(random.randint(10, 60))]
    lines = [run_id, *passed, f"{len(passed)} passed in {random.randint(100, 999) / 100}s"]
    return "\n".join(lines)


def _passing(random: Random, test: str) -> str:
    verb, a, state = random.choice(VERBS), random.choice(NOUNS), random.choice(STATES)
    return _PASSING.format(path=test, verb=verb, a=a, state=state)


def _edited(file: SourceFile, place: int, new: str) -> str:
    """Changes the line in the file, and returns what the edit tool says."""
    file.lines[place] = new
    return f"{file.path} was updated:\n{file.numbered(max(0, place - 4), 9)}"
