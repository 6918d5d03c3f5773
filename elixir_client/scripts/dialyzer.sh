#!/bin/sh
# Runs dialyzer on the library. The PLT is built once for each version of Erlang and Elixir, under
# ${RANK_BRIDGE_CACHE:-../.cache}. Needs dialyzer and Erlang's development files (Debian: erlang-dialyzer, erlang-dev).
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
cache=${RANK_BRIDGE_CACHE:-$here/../.cache}
mkdir -p "$cache"

elixir_ebin=$(elixir -e 'IO.write(:code.lib_dir(:elixir))')/ebin
# dialyzer reads Elixir's debug information by way of Elixir's own modules.
export ERL_FLAGS="-pa $elixir_ebin"
version=$(elixir -e 'IO.write("#{System.otp_release()}-#{System.version()}")')
plt=$cache/dialyzer-$version.plt

if [ ! -e "$plt" ]; then
  scratch=$plt.$$
  dialyzer --build_plt --output_plt "$scratch" \
    --apps erts kernel stdlib crypto asn1 public_key ssl -r "$elixir_ebin" >"$scratch.log" || [ $? = 2 ] || {
    cat "$scratch.log" >&2
    exit 1
  }
  mv "$scratch" "$plt"
  rm -f "$scratch.log"
fi

MIX_ENV=dev MIX_BUILD_PATH=$here/_build/dialyzer mix compile --warnings-as-errors
exec dialyzer --plt "$plt" --no_check_plt -Wunmatched_returns \
  -r "$here/_build/dialyzer/lib/rank_bridge/ebin"
