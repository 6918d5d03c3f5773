defmodule RankBridge.Test.Hostile.Case do
  @moduledoc """
  What a server does to a client, and what must come of it.

  * `section` - of RFC 9113, RFC 7541 or gRPC's specification of HTTP/2
  * `begin` - steps instead of SETTINGS and their acknowledgement; `:raw`: the play answers the client's first bytes
  * `play` - steps in answer to the request, which is stream 1
  * `repeat` - how many connections are played so
  * `call` - `{:ok, message}`, or `{:error, code, sent?}` with gRPC's code and `RankBridge.Transport.Status`'s `sent?`, which is
    false if the operation is certainly not done
  * `wire` - what the server sees: `:kept`, the connection goes on; `{:stream, code}`, RST_STREAM and the connection goes on;
    `{:connection, code}`, GOAWAY and another connection; `:replaced`, another connection; `:any` - it is not asked
  * `sees` - a frame that the server must get
  * `opts` - of the channel
  * `timeout` - of the call, in milliseconds
  """

  alias RankBridge.Test.Hostile.Server

  @enforce_keys [:name, :section]
  defstruct [
    :name,
    :section,
    :begin,
    :sees,
    play: [],
    repeat: 1,
    call: {:ok, "fine"},
    wire: :kept,
    opts: [],
    timeout: 5_000
  ]

  @type wire :: :kept | {:stream, atom()} | {:connection, atom()} | :replaced | :any
  @type t :: %__MODULE__{
          name: String.t(),
          section: String.t(),
          begin: nil | :raw | [Server.step()],
          sees: nil | tuple(),
          play: [Server.step()],
          repeat: pos_integer(),
          call: {:ok, binary()} | {:error, atom(), boolean()},
          wire: wire(),
          opts: keyword(),
          timeout: pos_integer()
        }

  @doc "A case whose call goes well, as what is wrong must be ignored."
  @spec ignored(String.t(), String.t(), [Server.step()], keyword()) :: t()
  def ignored(name, section, play, fields \\ []), do: new(name, section, play, [], fields)

  @doc "A case that ends its stream with a code, and so its call; other calls go on."
  @spec stream(String.t(), String.t(), atom(), [Server.step()], keyword()) :: t()
  def stream(name, section, code, play, fields \\ []),
    do: new(name, section, play, [call: {:error, :internal, true}, wire: {:stream, code}], fields)

  @doc "A case that ends the connection with a code."
  @spec connection(String.t(), String.t(), atom(), [Server.step()], keyword()) :: t()
  def connection(name, section, code, play, fields \\ []) do
    defaults = [call: {:error, :unavailable, true}, wire: {:connection, code}]
    new(name, section, play, defaults, fields)
  end

  @doc "A case that ends its call with a status of gRPC."
  @spec status(String.t(), String.t(), atom(), [Server.step()], keyword()) :: t()
  def status(name, section, code, play, fields \\ []),
    do: new(name, section, play, [call: {:error, code, true}], fields)

  @doc "A case in which the server ends the connection."
  @spec lost(String.t(), String.t(), [Server.step()], keyword()) :: t()
  def lost(name, section, play, fields \\ []) do
    defaults = [call: {:error, :unavailable, true}, wire: :replaced]
    new(name, section, play, defaults, fields)
  end

  @doc "A case in which no connection comes about, and so nothing was sent."
  @spec unopened(String.t(), String.t(), :raw | [Server.step()], keyword()) :: t()
  def unopened(name, section, begin, fields \\ []) do
    defaults = [begin: begin, call: {:error, :unavailable, false}, wire: :replaced]
    new(name, section, [], defaults, fields)
  end

  defp new(name, section, play, defaults, fields) do
    fields = Keyword.merge(defaults, fields)
    struct!(%__MODULE__{name: name, section: section, play: play}, fields)
  end
end
