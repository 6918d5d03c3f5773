defmodule RankBridge.Error do
  @moduledoc """
  A failure, with what a caller needs to act on it.

  * `reason` - what went wrong, see `t:reason/0`
  * `message` - one sentence for people; match on `reason`
  * `indefinite` - true: some rank may have done the operation; false: no rank has, and none will
  * `phase` - how far the operation came: `:check`, `:admission`, `:data`, `:forming`, or `:unspecified`
  * `rank` - rank in the gang: for `:peer_lost` the lost one (the first, if there are more), else the one that reports the
    error; nil: this client refuses the call
  * `group`, `operation`, `operation_id` - empty where none was involved
  * `generation` - in which it failed; 0: none
  * `expected`, `got` - both sides, where that applies
  * `ranks` - the ranks concerned: `rank` and `rank_in_group` of each, its `state`, a `detail`, and `site`, the line of
    code that made its request (empty: it made none, or its caller did not say; see `RankBridge.CallSite`). Of a missing
    rank, `activity` is what it did instead, nil if it was not asked: `doing`, which is `:idle` (it has no call), `:waiting`
    (for others), `:running` (in the backend), `:function`, `:stopped` (its process), `:silent` (it did not say in time) or
    `:held` (at a breakpoint), for `for_ms` milliseconds, and the `group`, `operation`, `operation_id` and `site` of what it waits for or runs; of a
    function, and of the script of a job to which the rank was attached, also `where` it is ("data.py:88 in next_batch").
    The state is `:arrived` (it called, and agreed), `:missing` (it did not call in time), `:disagrees` (it called for
    something else than the first to arrive), `:lost` (dead or out of reach), `:failed` (by itself; `detail` says how) or
    `:unspecified`
  * `raised` - of `:function_failed`, the exception; nil: no function raised one. It has its `rank`, `type` ("ValueError") and
    `text`, Python's `traceback`, the user's own lines first, and `where`, the innermost of those ("train.py:88 in next_batch";
    empty: there is none)
  * `outcomes` - for a call to several ranks, how each one's part ended: `{rank, :ok | error}` in the order of
    the call. The other fields are then those of the root cause, but `indefinite` is true as soon as any rank
    has done, or may have done, the operation.
  """

  alias RankBridge.Error.{Codes, RankDetail, Raised}
  alias RankBridge.Proto.V1
  alias RankBridge.Transport.Status

  @typedoc """
  The codes of `rankbridge.v1.ErrorCode` in lower case, and three of the transport: `:unavailable` (not reached,
  or lost), `:not_allowed` and `:protocol` (the two sides do not understand each other).
  """
  @type reason ::
          :invalid_argument
          | :unknown_ref
          | :released_ref
          | :wrong_session
          | :unknown_session
          | :unknown_group
          | :group_exists
          | :rank_out_of_range
          | :unsupported_dtype
          | :unsupported_operation
          | :resource_exhausted
          | :mismatch
          | :peer_missing
          | :peer_lost
          | :deadline_exceeded
          | :not_formed
          | :stale_generation
          | :backend_failed
          | :aborted
          | :forming_failed
          | :internal
          | :unknown_operation
          | :cancelled
          | :unknown_queue
          | :name_exists
          | :unknown_graph
          | :unknown_shared_memory
          | :function_failed
          | :unknown_function
          | :unavailable
          | :not_allowed
          | :protocol
          | :unspecified

  @typedoc "How far an operation came."
  @type phase :: :check | :admission | :data | :forming | :unspecified

  @type t :: %__MODULE__{
          reason: reason(),
          message: String.t(),
          indefinite: boolean(),
          phase: phase(),
          rank: non_neg_integer() | nil,
          group: String.t(),
          operation: String.t(),
          operation_id: String.t(),
          generation: non_neg_integer(),
          expected: String.t(),
          got: String.t(),
          ranks: [RankDetail.t()],
          raised: Raised.t() | nil,
          outcomes: [{non_neg_integer(), :ok | t()}]
        }

  # These have an entry for each rank. The message sums them up.
  @derive {Inspect, except: [:ranks, :outcomes]}
  defexception reason: :unspecified,
               message: "",
               indefinite: false,
               phase: :unspecified,
               rank: nil,
               group: "",
               operation: "",
               operation_id: "",
               generation: 0,
               expected: "",
               got: "",
               ranks: [],
               raised: nil,
               outcomes: []

  @typedoc """
  The caller's knowledge of a call that failed.

  * `changes?` - false: it changes nothing, so that it is never indefinite; default true
  * `begun?` - true: the operation was begun by an earlier call, so that it is always indefinite if this one is not
    answered; default false
  """
  @type context :: [
          rank: non_neg_integer(),
          group: String.t(),
          operation: String.t(),
          operation_id: String.t(),
          changes?: boolean(),
          begun?: boolean()
        ]

  # Of reasons that can meet in one call to several ranks, the first one here is the cause and the others follow
  # from it: a rank that refuses its arguments, or whose call was cancelled, makes the others miss it.
  @causes [
            :invalid_argument,
            :unknown_ref,
            :released_ref,
            :unknown_operation,
            :wrong_session,
            :unknown_session,
            :unknown_group,
            :group_exists,
            :unknown_queue,
            :name_exists,
            :unknown_graph,
            :unknown_shared_memory,
            :unknown_function,
            :rank_out_of_range,
            :unsupported_dtype,
            :unsupported_operation,
            :resource_exhausted,
            :mismatch,
            :internal,
            :not_allowed,
            :protocol,
            :function_failed,
            :peer_lost,
            :backend_failed,
            :forming_failed,
            :unavailable,
            :stale_generation,
            :not_formed,
            :aborted,
            :cancelled,
            :deadline_exceeded,
            :peer_missing,
            :unspecified
          ]
          |> Enum.with_index()
          |> Map.new()

  @permanent [:invalid_argument, :rank_out_of_range, :group_exists, :not_allowed, :protocol]

  @doc """
  Names reason, rank, operation, group, both sides, the ranks concerned, and what is known now.

      iex> error = %RankBridge.Error{reason: :unknown_ref, message: "no ref r1", rank: 2, operation: "get"}
      iex> Exception.message(error)
      "unknown_ref at rank 2 in get: no ref r1"
  """
  @impl true
  def message(%__MODULE__{} = error) do
    # A message that begins with its code has all sides itself.
    if String.starts_with?(error.message, "#{String.upcase(to_string(error.reason))} "),
      do: Enum.join([error.message | unknown(error)], "\n  "),
      else: spelled_out(error)
  end

  defp unknown(%{indefinite: indefinite}),
    do: if(indefinite, do: ["some ranks may have done it"], else: [])

  defp spelled_out(error) do
    place = [
      if(error.rank, do: " at rank #{error.rank}", else: ""),
      if(error.operation != "", do: " in #{error.operation}", else: ""),
      if(error.group != "", do: " of group #{inspect(error.group)}", else: "")
    ]

    shown? = Enum.any?(error.ranks, &(&1.detail == error.expected and error.expected != ""))

    sides =
      if (error.expected != "" or error.got != "") and not shown?,
        do: ["expected #{or_nothing(error.expected)}, got #{or_nothing(error.got)}"],
        else: []

    failed = for {_rank, %__MODULE__{} = outcome} <- error.outcomes, do: outcome

    count =
      if failed != [],
        do: ["#{length(failed)} of #{length(error.outcomes)} ranks failed"],
        else: []

    head =
      Enum.join(
        ["#{error.reason}#{place}: #{error.message}"] ++ sides ++ count ++ unknown(error),
        "; "
      )

    Enum.join([head | RankDetail.lines(error.ranks)], "\n  ")
  end

  defp or_nothing(""), do: "nothing"
  defp or_nothing(text), do: text

  @doc "A refusal by this client, before anything is sent."
  @spec refusal(reason(), String.t(), keyword()) :: t()
  def refusal(reason, message, fields \\ []) do
    struct!(%__MODULE__{reason: reason, message: message, phase: :check}, fields)
  end

  @doc "The error of a structured one that a rank sent. A code of a newer protocol is `:unspecified`."
  @spec from_proto(V1.Error.t()) :: t()
  def from_proto(%V1.Error{} = error) do
    reason = Codes.reason(error.code)
    ranks = Enum.map(error.ranks, &RankDetail.from_proto/1)

    %__MODULE__{
      reason: reason,
      rank: if(reason == :peer_lost, do: lost(ranks)) || error.rank,
      message: error.message,
      indefinite: error.indefinite,
      phase: Codes.phase(error.phase),
      group: error.group,
      operation: error.operation,
      operation_id: error.operation_id,
      generation: error.generation,
      expected: error.expected,
      got: error.got,
      ranks: ranks,
      raised: error.raised && Raised.from_proto(error.raised)
    }
  end

  @doc """
  The different calls that the ranks of a group made, with `:mismatch` and `:peer_missing`; the first rank's first.

  Each has its `ranks` in the gang, its `contract`, what they asked for in words, and its `site`, the line of code that did.
  """
  @spec sides(t()) :: [
          %{ranks: [non_neg_integer()], contract: String.t(), site: String.t()}
        ]
  def sides(%__MODULE__{ranks: ranks}) do
    made = for %{state: state} = it <- ranks, state in [:arrived, :disagrees], do: it

    for {contract, site} <- Enum.uniq(Enum.map(made, &{&1.detail, &1.site})) do
      its = for %{detail: ^contract, site: ^site, rank: rank} <- made, do: rank
      %{ranks: Enum.sort(its), contract: contract, site: site}
    end
  end

  defp lost(ranks), do: Enum.find_value(ranks, &(&1.state == :lost && &1.rank))

  @doc """
  The error of a call that got no answer over the transport.

  It is definite if the rank certainly has not processed the call, or if the call changes nothing
  (`changes?: false` in the context); else a deadline or a lost connection leaves it open. An operation that
  an earlier call has begun (`begun?: true`) stays open in any case.
  """
  @spec from_status(Status.t(), context()) :: t()
  def from_status(%Status{} = status, context) do
    {changes?, begun?, fields} = knowledge(context)
    reason = reason_of(status.code)

    refused? =
      status.code in [:unimplemented, :unauthenticated, :permission_denied, :invalid_argument]

    struct!(
      %__MODULE__{
        reason: reason,
        message:
          if(reason == status.code, do: status.message, else: "#{status.code}: #{status.message}"),
        indefinite: begun? or (changes? and status.sent? and not refused?)
      },
      fields
    )
  end

  defp reason_of(code) when code in [:unavailable, :deadline_exceeded, :cancelled], do: code
  defp reason_of(code) when code in [:resource_exhausted, :internal], do: code
  defp reason_of(code) when code in [:unauthenticated, :permission_denied], do: :not_allowed
  defp reason_of(_code), do: :protocol

  @doc """
  Whether waiting cannot mend it: the same call, made later, fails again.

      iex> RankBridge.Error.permanent?(%RankBridge.Error{reason: :unavailable})
      false
  """
  @spec permanent?(t()) :: boolean()
  def permanent?(%__MODULE__{reason: reason}), do: reason in @permanent

  @doc "The error of an answer that cannot be understood."
  @spec protocol(String.t(), context()) :: t()
  def protocol(message, context) do
    {changes?, begun?, fields} = knowledge(context)

    struct!(
      %__MODULE__{reason: :protocol, message: message, indefinite: changes? or begun?},
      fields
    )
  end

  defp knowledge(context) do
    {changes?, context} = Keyword.pop(context, :changes?, true)
    {begun?, fields} = Keyword.pop(context, :begun?, false)
    {changes?, begun?, fields}
  end

  @doc """
  One error for a call to several ranks, of which some failed: the root cause, with every rank's outcome.

  It is indefinite if any rank has done it, or may have; never, if the call changes nothing. Raises if none failed.
  """
  @spec combine([{non_neg_integer(), :ok | t()}], boolean()) :: t()
  def combine(outcomes, changes? \\ true) do
    failed = for {_rank, %__MODULE__{} = error} <- outcomes, do: error
    [_at_least_one | _rest] = failed
    cause = Enum.min_by(failed, &{@causes[&1.reason], follows?(&1), &1.indefinite, relayed?(&1)})
    done? = Enum.any?(outcomes, fn {_rank, outcome} -> outcome == :ok end)

    %{
      cause
      | outcomes: outcomes,
        indefinite: changes? and (done? or Enum.any?(failed, & &1.indefinite)),
        ranks: if(cause.ranks == [], do: details(outcomes), else: cause.ranks)
    }
  end

  # Whether a rank was stopped by what another one's function has raised.
  defp follows?(%{raised: nil}), do: false
  defp follows?(%{raised: raised, rank: rank}), do: raised.rank != rank

  # Whether a rank reports what another has refused.
  defp relayed?(%{ranks: []}), do: false
  defp relayed?(%{ranks: ranks, rank: rank}), do: Enum.all?(ranks, &(&1.rank != rank))

  defp details(outcomes) do
    for {{rank, %__MODULE__{} = error}, place} <- Enum.with_index(outcomes) do
      state = if error.reason == :unavailable, do: :lost, else: :failed

      %RankDetail{
        rank: rank,
        rank_in_group: place,
        state: state,
        detail: "#{error.reason}: #{error.message}"
      }
    end
  end
end
