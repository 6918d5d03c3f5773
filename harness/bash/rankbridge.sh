# A gang for tests in bash, with jq: source this file. Every function prints what came, or the error, and fails then.
#
#   rb_start; rb open '{"protocol": 1, "size": 2}'
#   rb create '{"name": "x", "dtype": "float32", "shape": [4], "fill": "rank"}'
#   rb call '{"call": "all_reduce", "of": "x", "as": "y"}'
#   rb get '{"name": "y", "rank": 1}' | jq '.ranks["1"].values'
#   rb_end

RB_COUNT=0

# rb_start: starts the driver. The gang ends when this shell does.
rb_start() {
  coproc RB_DRIVER { exec "${RANKBRIDGE_COMMAND:-rankbridge}" drive; }
  RB_PID=$RB_DRIVER_PID
  # Of their own, as subshells have not those of a coprocess.
  exec {RB_OUT}<&"${RB_DRIVER[0]}" {RB_IN}>&"${RB_DRIVER[1]}"
  eval "exec ${RB_DRIVER[0]}<&- ${RB_DRIVER[1]}>&-"
  RB_EVENTS=$(mktemp)
}

# rb DO FIELDS: asks for something, and waits for the answer. FIELDS: a JSON object. Events go to the file $RB_EVENTS.
rb() {
  rb_begin "$@" || return
  rb_wait "$RB_ID"
}

# rb_begin DO FIELDS: asks for something, and does not wait. Its id is in RB_ID.
rb_begin() {
  local fields=${2:-} request
  # Of a subshell, too, no two requests that go on have one id.
  RB_COUNT=$((RB_COUNT + 1))
  RB_ID=$BASHPID.$RB_COUNT
  request=$(jq -cn --arg id "$RB_ID" --arg do "$1" --argjson fields "${fields:-{\}}" '$fields + {id: $id, do: $do}') || return
  printf '%s\n' "$request" >&"$RB_IN"
}

# rb_wait ID: waits for the answer to what was begun. Answers to others are kept for who waits for them.
rb_wait() {
  local line="" kept="$RB_EVENTS.$1"
  if [ -f "$kept" ]; then
    line=$(cat "$kept")
    rm "$kept"
  else
    while IFS= read -r -u "$RB_OUT" line; do
      case $(jq -r '.id // empty' <<<"$line") in
        "$1") break ;;
        "") printf '%s\n' "$line" >>"$RB_EVENTS" ;;
        *) printf '%s\n' "$line" >"$RB_EVENTS.$(jq -r .id <<<"$line")" ;;
      esac
      line=""
    done
  fi
  if [ -z "$line" ]; then
    echo "the driver has ended: $(tail -n 1 "$RB_EVENTS")" >&2
    return 3
  fi
  jq -ce '.ok // empty' <<<"$line" || {
    jq -c .error <<<"$line"
    return 1
  }
}

# rb_end: ends the gang, and waits for that.
rb_end() {
  exec {RB_IN}>&- {RB_OUT}<&-
  wait "$RB_PID"
  rm -f "$RB_EVENTS"*
}
