#!/usr/bin/env bash
# Sets practicum up in this clone, shows what this machine can do, and trains a small agent on real coding tasks.
# Arguments go to `practicum train quickstart`, for example: ./quickstart.sh --set seed=1
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. scripts/setup.sh

set_up train
step "practicum doctor" "$venv/bin/practicum" doctor
say "==> practicum train quickstart $*"
exec "$venv/bin/practicum" train quickstart "$@"
