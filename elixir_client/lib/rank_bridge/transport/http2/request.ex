defmodule RankBridge.Transport.HTTP2.Request do
  @moduledoc false
  # What a call asks of a connection: its header block, its data so far, and how its stream is to be run.
  #
  # * `block` - the header block, hidden: it has the caller's metadata
  # * `header_list` - size of the headers as RFC 9113 counts it: names, values, and 32 bytes for each
  # * `data` - binaries, `bytes` of them together; `fin?` says that no more will follow
  # * `replenish` - when the stream's receive window grows again: `:receipt`, for the one message of a
  #   unary response, or `:consumption`, when the caller says so
  # * `limit` - bytes of DATA that the stream may bring in all
  # * `report_sent?` - whether the caller wants `{:sent, bytes}` events, to hold itself back
  # * `refusals` - how often a server has refused the request
  # * `deadline` - in milliseconds of the monotonic clock

  alias RankBridge.Hidden

  # The block may show a token.
  @derive {Inspect, except: [:block, :data]}
  @enforce_keys [:block, :caller]
  defstruct [
    :block,
    :caller,
    header_list: 0,
    data: [],
    bytes: 0,
    fin?: true,
    replenish: :receipt,
    limit: :infinity,
    report_sent?: false,
    refusals: 0,
    deadline: :infinity,
    wait_for_ready?: false
  ]

  @type t :: %__MODULE__{
          block: Hidden.t(binary()),
          caller: pid(),
          header_list: non_neg_integer(),
          data: [binary()],
          bytes: non_neg_integer(),
          fin?: boolean(),
          replenish: :receipt | :consumption,
          limit: pos_integer() | :infinity,
          report_sent?: boolean(),
          refusals: non_neg_integer(),
          deadline: integer() | :infinity,
          wait_for_ready?: boolean()
        }
end
