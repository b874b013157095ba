#!/usr/bin/env bash
# Creates a virtual environment and installs ContextPilot into it, at the pinned versions.
#   scripts/install.sh [FOLDER]     default: .venv; PYTHON=... chooses the interpreter
set -euo pipefail
cd "$(dirname "$0")/.."
venv=${1:-.venv}

find_python() {
  local candidate
  for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "error: no Python 3.11 or newer was found (looked for: ${PYTHON:-python3 and newer})." \
    "Install one, or name it: PYTHON=/path/to/python make test" >&2
  return 1
}

if [ ! -x "$venv/bin/python" ]; then
  python=$(find_python)
  "$python" -m venv "$venv" || {
    echo "error: $python cannot make virtual environments." \
      "On Debian and Ubuntu: apt install python3-venv" >&2
    exit 1
  }
fi

pip=("$venv/bin/python" -m pip --disable-pip-version-check install --quiet)
echo "installing into $venv (the first time takes a few minutes)"
# torch first and alone: the build that is at hand, CPU or CUDA, and nothing later replaces it.
"${pip[@]}" "$(grep '^torch==' requirements.txt)"
"${pip[@]}" -r requirements.txt
# The build back end is pinned as well, hence no isolation.
"${pip[@]}" --no-deps --no-build-isolation -e .
