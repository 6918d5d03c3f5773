defmodule RankBridge.Protobuf.Rpc do
  @moduledoc false
  # One method of a service: where it is called, with what, and which side streams.

  @type t :: %__MODULE__{
          path: String.t(),
          request: module(),
          response: module(),
          client_stream?: boolean(),
          server_stream?: boolean()
        }

  @enforce_keys [:path, :request, :response]
  defstruct [:path, :request, :response, client_stream?: false, server_stream?: false]
end
