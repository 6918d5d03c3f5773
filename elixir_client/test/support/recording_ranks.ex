defmodule RankBridge.Test.RecordingRanks do
  @moduledoc """
  Three ranks of the group "world" within this VM, which keep every operation that they are asked for, and answer with
  the value that they were told to give: a transport that answers by itself. Of a gang call, the values of all, in one
  answer.
  """

  use Agent

  alias RankBridge.Proto.V1
  alias RankBridge.Value

  defstruct [:ranks, :rank, :answer, said: [], transport: __MODULE__]

  @rpcs [V1.RankService.describe_rank(), V1.RefService.open_session()] ++
          [V1.RefService.close_session(), V1.OperationService.submit()] ++
          [V1.OperationService.await(), V1.OperationService.poll(), V1.RefService.release_refs()]

  @doc "Starts them. They give none."
  @spec start_link(keyword()) :: Agent.on_start()
  def start_link(_opts),
    do: Agent.start_link(fn -> %{gives: %{}, asked: [], passed_on: &Function.identity/1} end)

  @doc "Options of a gang of these ranks."
  @spec gang(pid()) :: keyword()
  def gang(ranks) do
    key = ranks |> :erlang.pid_to_list() |> List.to_string()
    [endpoints: for(rank <- 0..2, do: "#{key}/#{rank}"), transport: __MODULE__, form: false]
  end

  @doc "Tells each rank what to give from now on."
  @spec give(pid(), [Value.t()]) :: :ok
  def give(ranks, values) do
    gives = for {value, rank} <- Enum.with_index(values), into: %{}, do: {rank, value}
    Agent.update(ranks, &%{&1 | gives: gives})
  end

  @doc "Tells the ranks what becomes of the members' outcomes of gang calls that they pass on."
  @spec pass_on(pid(), ([V1.MemberOutcome.t()] -> [V1.MemberOutcome.t()])) :: :ok
  def pass_on(ranks, fun), do: Agent.update(ranks, &%{&1 | passed_on: fun})

  @doc "What the ranks were asked for since this was last asked: by rank, the requests in order."
  @spec asked(pid()) :: %{non_neg_integer() => [struct()]}
  def asked(ranks) do
    asked = Agent.get_and_update(ranks, &{&1.asked, %{&1 | asked: []}})
    asked |> Enum.reverse() |> Enum.group_by(&elem(&1, 0), &elem(&1, 1))
  end

  # --- the transport ---

  @doc false
  def connect(target, _opts) do
    [key, rank] = String.split(target, "/")
    ranks = key |> String.to_charlist() |> :erlang.list_to_pid()
    {:ok, %__MODULE__{ranks: ranks, rank: String.to_integer(rank)}}
  end

  @doc false
  def close(_channel), do: :ok

  @doc false
  def start_unary(channel, path, request, _opts) do
    rpc = Enum.find(@rpcs, &(&1.path == path))
    answer = answer(channel, rpc.request.decode(IO.iodata_to_binary(request)))
    %{channel | answer: {:ok, rpc.response.encode(answer)}}
  end

  @doc false
  def await(%__MODULE__{answer: answer}), do: answer

  @doc false
  def open_stream(channel, _path, _opts), do: {:ok, channel}

  @doc false
  def room?(_call), do: true

  @doc false
  def send_message(call, bytes) do
    %{kind: kind, number: number} = V1.ExecuteRequest.decode(IO.iodata_to_binary(bytes))
    response = V1.ExecuteResponse.encode(%{executed(call, kind) | number: number})
    {:ok, %{call | said: call.said ++ [response]}}
  end

  defp executed(call, {:call, request}),
    do: %V1.ExecuteResponse{outcome: answer(call, request).outcome}

  defp executed(call, {:part, %{kind: {_name, request}}}),
    do: %V1.ExecuteResponse{outcome: {:result, answer(call, request)}}

  @doc false
  def hear(_call, _message), do: :unknown

  @doc false
  def arrived(call), do: {:ok, call.said, %{call | said: []}}

  @doc false
  def cancel(_call), do: :ok

  defp answer(channel, request),
    do: Agent.get_and_update(channel.ranks, &answer(&1, channel.rank, request))

  defp answer(state, rank, %V1.DescribeRankRequest{}) do
    {%V1.DescribeRankResponse{
       rank: rank,
       world_size: 3,
       generation_state: :GENERATION_STATE_FORMED
     }, state}
  end

  defp answer(state, _rank, %V1.OpenSessionRequest{}),
    do: {%V1.OpenSessionResponse{outcome: {:session_id, "s"}}, state}

  defp answer(state, _rank, %V1.CloseSessionRequest{}),
    do: {%V1.CloseSessionResponse{outcome: {:released, 0}}, state}

  defp answer(state, rank, %V1.ReleaseRefsRequest{} = request) do
    outcome = {:released, length(request.ref_ids)}
    {%V1.ReleaseRefsResponse{outcome: outcome}, keep(state, rank, request)}
  end

  defp answer(state, rank, %V1.SubmitRequest{operation: operation} = request) do
    {_name, %{call: call}} = operation.kind
    {%V1.SubmitResponse{outcome: {:operation_id, call.operation_id}}, keep(state, rank, request)}
  end

  defp answer(state, rank, %V1.PollRequest{}) do
    result = %V1.OperationResult{outcome: {:value, value(state, rank)}}
    status = %V1.OperationStatus{state: :OPERATION_STATE_DONE, result: result}
    {%V1.PollResponse{outcome: {:status, status}}, state}
  end

  defp answer(state, rank, %V1.CallRequest{} = request) do
    members =
      for member <- 0..2 do
        result = %V1.OperationResult{outcome: {:value, value(state, member)}}
        %V1.MemberOutcome{rank: member, result: result}
      end

    outcomes = %V1.MemberOutcomes{members: state.passed_on.(members)}
    {%V1.CallResponse{outcome: {:outcomes, outcomes}}, keep(state, rank, request)}
  end

  defp answer(state, rank, %V1.AwaitRequest{}),
    do: {%V1.AwaitResponse{outcome: {:value, value(state, rank)}}, state}

  # A part of an operation.
  defp answer(state, rank, request) do
    result = %V1.OperationResult{outcome: {:value, value(state, rank)}}
    {result, keep(state, rank, request)}
  end

  defp keep(state, rank, request), do: %{state | asked: [{rank, request} | state.asked]}

  defp value(state, rank) do
    {:ok, value} = Value.to_proto(state.gives[rank])
    value
  end
end
