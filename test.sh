#!/usr/bin/env bash
# Sets practicum up in this clone and runs every check and test. Arguments go to pytest, for example: ./test.sh -k cli
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. scripts/setup.sh

set_up train,serve,dev
step "ruff check" "$venv/bin/ruff" check --quiet .
step "ruff format --check" "$venv/bin/ruff" format --check --quiet .
step "mypy --strict" "$venv/bin/mypy" --no-error-summary
step "import-linter" "$venv/bin/lint-imports" --no-cache
say "==> pytest $*"
# Two processes: most tests wait for boxes. An argument such as -n 0 comes later and wins.
exec "$python" -m pytest -n 2 --dist worksteal "$@"
