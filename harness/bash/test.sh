#!/usr/bin/env bash
# The helper for bash, tested by itself: TAP on standard output.
set -u
source "$(dirname "${BASH_SOURCE[0]}")/rankbridge.sh"

COUNT=0
FAILED=0
# is NAME GOT EXPECTED
is() {
  COUNT=$((COUNT + 1))
  if [ "$2" = "$3" ]; then
    echo "ok $COUNT - $1"
  else
    FAILED=1
    printf 'not ok %d - %s\n  ---\n  got: %s\n  expected: %s\n  ...\n' "$COUNT" "$1" "$2" "$3"
  fi
}

rb_start
is "a gang is opened" "$(rb open '{"protocol": 1, "size": 3, "backend": "gloo"}' | jq -c '[.ranks[].rank]')" "[0,1,2]"
rb create '{"name": "x", "dtype": "float32", "shape": [2], "fill": "rank"}' >/dev/null
rb call '{"call": "all_reduce", "of": "x", "as": "y"}' >/dev/null
is "a sum" "$(rb get '{"name": "y", "rank": 1}' | jq -c '.ranks["1"].values')" "[3,3]"

error=$(rb call '{"call": "all_reduce", "of": "x", "but": {"1": {"op": "max"}}}')
is "a call that fails fails" "$?" "1"
is "who asks for something else is named" \
  "$(jq -c '[.ranks["0"].ranks[] | select(.state == "disagrees").rank]' <<<"$error")" "[1]"

rb_begin call '{"call": "barrier", "absent": [2], "timeout_ms": 60000}'
barrier=$RB_ID
rb fault '{"kill": [2], "at": "waiting"}' >/dev/null
error=$(rb_wait "$barrier")
is "who is killed is named while others wait" \
  "$(jq -c '[.code, (.ranks[].ranks[] | select(.state == "lost").rank)]' <<<"$error")" '["PEER_LOST",2,2]'
is "it is replaced" "$(rb form '{}' | jq -c .replaced)" "[2]"
is "the gang is whole" "$(rb call '{"call": "barrier", "expect": {"ok": true}}' | jq -c '.ranks | keys')" '["0","1","2"]'
rb_end
is "the driver ends well" "$?" "0"
echo "1..$COUNT"
exit "$FAILED"
