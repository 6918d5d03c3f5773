defmodule RankBridge.Transport.Status do
  @moduledoc false
  # How a call ended, other than well: a gRPC status.
  #
  # * `code` - one of `codes/0`, as an atom
  # * `message` - for people; what the server said, or what happened on the way to it
  # * `metadata` - trailers that the server sent along; values of `-bin` keys are decoded
  # * `sent?` - false if the server certainly has not processed the request (it never left, or the server
  #   refused it), so that repeating it is safe; true if it may have been processed in part or in whole

  @codes [
    :ok,
    :cancelled,
    :unknown,
    :invalid_argument,
    :deadline_exceeded,
    :not_found,
    :already_exists,
    :permission_denied,
    :resource_exhausted,
    :failed_precondition,
    :aborted,
    :out_of_range,
    :unimplemented,
    :internal,
    :unavailable,
    :data_loss,
    :unauthenticated
  ]

  @enforce_keys [:code]
  defstruct code: nil, message: "", metadata: [], sent?: true

  @type code ::
          :ok
          | :cancelled
          | :unknown
          | :invalid_argument
          | :deadline_exceeded
          | :not_found
          | :already_exists
          | :permission_denied
          | :resource_exhausted
          | :failed_precondition
          | :aborted
          | :out_of_range
          | :unimplemented
          | :internal
          | :unavailable
          | :data_loss
          | :unauthenticated

  @type t :: %__MODULE__{
          code: code(),
          message: String.t(),
          metadata: [{String.t(), binary()}],
          sent?: boolean()
        }

  @doc "All codes; the place in the list is the number on the wire."
  @spec codes() :: [code()]
  def codes, do: @codes

  @doc "A status that arose on this side. `sent?` as in the module's description."
  @spec new(code(), String.t(), boolean()) :: t()
  def new(code, message, sent?) when code in @codes do
    %__MODULE__{code: code, message: message, sent?: sent?}
  end

  @doc "The code of a number; numbers that gRPC does not know mean `:unknown`."
  @spec code(integer()) :: code()
  for {code, number} <- Enum.with_index(@codes) do
    def code(unquote(number)), do: unquote(code)
  end

  def code(number) when is_integer(number), do: :unknown

  @doc "The number of a code."
  @spec number(code()) :: 0..16
  for {code, number} <- Enum.with_index(@codes) do
    def number(unquote(code)), do: unquote(number)
  end
end
