#!/bin/sh
# Runs dialyzer on the library and on its compat package. The PLT is built once for each version of Erlang and Elixir, under
# ${RANK_BRIDGE_CACHE:-../.cache}; what is looked at is compiled in ${RANK_BRIDGE_BUILD:-_build/dialyzer}. Needs
# dialyzer and Erlang's development files (Debian: erlang-dialyzer, erlang-dev).
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
cache=${RANK_BRIDGE_CACHE:-$here/../.cache}
mkdir -p "$cache"

elixir_ebin=$(elixir -e 'IO.write(:code.lib_dir(:elixir))')/ebin
logger_ebin=$(elixir -e 'IO.write(:code.lib_dir(:logger))')/ebin
# Of Mix's tasks.
mix_ebin=$(elixir -e 'IO.write(:code.lib_dir(:mix))')/ebin
# dialyzer reads Elixir's debug information by way of Elixir's own modules.
export ERL_FLAGS="-pa $elixir_ebin"
version=$(elixir -e 'IO.write("#{System.otp_release()}-#{System.version()}")')
plt=$cache/dialyzer-with-mix-$version.plt

if [ ! -e "$plt" ]; then
  scratch=$plt.$$
  dialyzer --build_plt --output_plt "$scratch" \
    --apps erts kernel stdlib crypto asn1 public_key ssl -r "$elixir_ebin" "$logger_ebin" "$mix_ebin" >"$scratch.log" || [ $? = 2 ] || {
    cat "$scratch.log" >&2
    exit 1
  }
  mv "$scratch" "$plt"
  rm -f "$scratch.log"
fi

# As for tests: with what SnakeBridge's users have at hand, so that what is only compiled beside it is looked at, too. Of
# the tests' own modules none.
build=${RANK_BRIDGE_BUILD:-$here/_build/dialyzer}
cd compat
MIX_ENV=test MIX_BUILD_PATH=$build mix compile --warnings-as-errors
beams=$(elixir -pa "$build/lib/*/ebin" -e '
  [here, build] = System.argv()
  for beam <- Path.wildcard(build <> "/lib/{rank_bridge,rank_bridge_compat}/ebin/*.beam"),
      {:ok, {_module, [compile_info: info]}} = :beam_lib.chunks(to_charlist(beam), [:compile_info]),
      String.starts_with?(to_string(info[:source]), [here <> "/lib/", here <> "/compat/lib/"]),
      do: IO.puts(beam)' "$here" "$build")
# shellcheck disable=SC2086
exec dialyzer --plt "$plt" --no_check_plt -Wunmatched_returns $beams "$build"/lib/snakebridge/ebin/*.beam
