defmodule RankBridge.Report do
  @moduledoc """
  What a function has reported on one rank, see `RankBridge.Functions.reports/3`.

  * `rank` - rank in the gang
  * `number` - number among the reports of the call on this rank, from 1
  * `time` - when, by the clock of the rank's host, in UTC
  * `value` - a map of names to values, or what the function has yielded; its tensors are values, no refs
  * `missed` - how many reports before it the rank has dropped because its readers were too slow
  """

  alias RankBridge.{Error, Value}
  alias RankBridge.Proto.V1

  @type t :: %__MODULE__{
          rank: non_neg_integer(),
          number: pos_integer(),
          time: DateTime.t(),
          value: Value.t(),
          missed: non_neg_integer()
        }

  @enforce_keys [:rank, :number, :time, :value]
  defstruct [:rank, :number, :time, :value, missed: 0]

  @doc "The report that a rank sent. The error says what its value lacks."
  @spec from_proto(V1.Report.t()) :: {:ok, t()} | {:error, Error.t()}
  def from_proto(%V1.Report{} = report) do
    with {:ok, value} <- Value.from_proto(report.value) do
      {:ok,
       %__MODULE__{
         rank: report.rank,
         number: report.number,
         time: DateTime.from_unix!(report.time_us, :microsecond),
         value: value,
         missed: report.missed
       }}
    end
  end
end
