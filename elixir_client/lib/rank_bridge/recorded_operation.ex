defmodule RankBridge.RecordedOperation do
  @moduledoc """
  An operation in a rank's record, see `RankBridge.Generations.record/2`.

  * `operation` - its kind: "all_reduce"
  * `group` - name of its group
  * `operation_id` - of a call of the user's own code, what is the same on all members; empty: none
  * `session_id` - session of its caller; empty: the shared one
  * `generation` - in which it was called
  * `contract` - what its members agree on: "all_reduce dtype=float32 shape=[4] op=sum"; empty: nothing, or it was not announced
  * `site` - the line of code that made the call, see `RankBridge.CallSite`; empty: not said
  * `function` - name of the user's function that it calls; empty: none
  * `called_us` - when the rank accepted it, by the clock of the rank's host: microseconds since 1970 in UTC
  * `announced_us` - microseconds from there until the rank announced it to the group's leader; nil: it did not
  * `entered_us` - until it entered the backend, or the function began; nil: it did not
  * `done_us` - until the rank answered it; nil: it has not yet
  * `phase` - how far it has come: `:check` (queued behind others of its group), `:admission` (waiting for the other members),
    `:data` (in the backend), or `:unspecified`
  * `code` - how it failed, see `t:RankBridge.Error.reason/0`; nil: it went well, or is not done
  * `message` - the error's text; empty: none
  * `indefinite` - whether other ranks may have done it although it failed here
  * `caller` - `:controller`: an operation; `:script`: the user's own code, by torch.distributed
  * `number` - of a call of the user's own code: its number in its group, from 1, the same on all members; 0: none
  """

  alias RankBridge.Error
  alias RankBridge.Error.Codes
  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          operation: String.t(),
          group: String.t(),
          operation_id: String.t(),
          session_id: String.t(),
          generation: non_neg_integer(),
          contract: String.t(),
          site: String.t(),
          function: String.t(),
          called_us: non_neg_integer(),
          announced_us: non_neg_integer() | nil,
          entered_us: non_neg_integer() | nil,
          done_us: non_neg_integer() | nil,
          phase: Error.phase(),
          code: Error.reason() | nil,
          message: String.t(),
          indefinite: boolean(),
          caller: :controller | :script,
          number: non_neg_integer()
        }

  @enforce_keys [:operation, :group, :called_us, :phase]
  defstruct [
    :operation,
    :group,
    :called_us,
    :announced_us,
    :entered_us,
    :done_us,
    :phase,
    :code,
    operation_id: "",
    session_id: "",
    generation: 0,
    contract: "",
    site: "",
    function: "",
    message: "",
    indefinite: false,
    caller: :controller,
    number: 0
  ]

  @copied [:operation, :group, :operation_id, :session_id, :generation, :contract, :site] ++
            [
              :function,
              :called_us,
              :announced_us,
              :entered_us,
              :done_us,
              :message,
              :indefinite,
              :number
            ]

  @doc "The operation that a rank sent."
  @spec from_proto(V1.RecordedOperation.t()) :: t()
  def from_proto(%V1.RecordedOperation{} = it) do
    fields = Map.take(it, @copied)
    caller = if it.by_script, do: :script, else: :controller
    read = %{phase: Codes.phase(it.phase), code: code(it.code), caller: caller}
    struct!(__MODULE__, Map.merge(fields, read))
  end

  defp code(:ERROR_CODE_UNSPECIFIED), do: nil
  defp code(code), do: Codes.reason(code)
end
