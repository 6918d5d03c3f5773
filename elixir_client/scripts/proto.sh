#!/bin/sh
# Writes lib/rank_bridge/proto/v1/*.pb.ex from proto/rankbridge/v1/*.proto.
# Needs PYTHON (default: python3) with grpcio-tools.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}
out=${1:-$here/lib/rank_bridge/proto}
mkdir -p "$out"
wrapper=$(mktemp)
trap 'rm -f "$wrapper"' EXIT
printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$python" "$here/codegen/protoc-gen-rankbridge-elixir" >"$wrapper"
chmod +x "$wrapper"
cd "$here/../proto"
"$python" -m grpc_tools.protoc -I. \
  --plugin=protoc-gen-rankbridge-elixir="$wrapper" \
  --rankbridge-elixir_out="$out" \
  rankbridge/v1/*.proto
