# Sourced by the bash scripts beside it: one environment for all, and children that never outlive their script.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
VENV=$ROOT/.venv
CACHE=$ROOT/.cache
mkdir -p "$CACHE"

# Elixir reads and prints UTF-8; with LANG=C it would guess latin1.
export LC_ALL=C.UTF-8 LANG=C.UTF-8
export ELIXIR_ERL_OPTIONS="${ELIXIR_ERL_OPTIONS:-+fnu}"
export PYTHONNOUSERSITE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV MIX_ENV

say() { printf '%s\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# run COMMAND...: as COMMAND alone, but in a process group of its own, so that a signal to this shell is acted on
# at once and ends the whole group.
run() {
  set -m
  "$@" </dev/null &
  set +m
  wait $!
}

# install_locked PIP LOCK...: installs exactly what the locks pin, and refuses a file whose hash is not there. Takes no
# sources: to build them, pip would fetch more, without hashes.
install_locked() {
  local pip=$1
  shift
  run "$pip" install -qq --no-deps --require-hashes --only-binary :all: "${@/#/--requirement=}"
}

# environment FOLDER LOCK: makes a virtual environment with what the lock pins, unless it is there.
environment() {
  local folder=$1 lock=$2 stamp=$1/.set-up wanted
  wanted=$({ printf '%s\n' "$ROOT"; cat "$lock"; } | sha256sum)
  [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ] || return 0
  exec 8>"$CACHE/${folder##*/}.lock"
  run flock 8
  if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    say "making ${folder##*/}"
    run "$VENV/bin/python" -m venv --clear "$folder" || fail "no virtual environment could be made"
    install_locked "$folder/bin/pip" "$lock" || fail "what ${lock##*/} pins could not be installed"
    printf '%s\n' "$wanted" >"$stamp"
  fi
  exec 8>&-
}

any_alive() {
  local group
  for group in "$@"; do
    if kill -0 -- "-$group" 2>/dev/null; then return 0; fi
  done
  return 1
}

# Tenths of a second that children have to end when asked, before they are killed.
GRACE_TENTHS=100

# Ends every group that `run` has started, waits for it, then ends this shell by the same signal.
end_children() {
  local signal=$1 groups group try
  trap '' INT TERM HUP
  mapfile -t groups < <(jobs -p)
  for group in "${groups[@]}"; do
    kill -TERM -- "-$group" 2>/dev/null || true
    kill -CONT -- "-$group" 2>/dev/null || true
  done
  for ((try = 0; try < GRACE_TENTHS; try++)); do
    any_alive "${groups[@]}" || break
    sleep 0.1
  done
  for group in "${groups[@]}"; do
    kill -KILL -- "-$group" 2>/dev/null || true
  done
  wait
  trap - INT TERM HUP
  kill -s "$signal" $$
}
trap 'end_children INT' INT
trap 'end_children TERM' TERM
trap 'end_children HUP' HUP
