defmodule RankBridge.Test.ScriptedRanks do
  @moduledoc """
  Ranks that know groups, and the names of queues and graphs, within this VM: a transport that answers by itself, and
  can be told to fail.

  What is made is there on one rank as soon as that rank is asked: nothing here waits for the other ranks.
  """

  use Agent

  alias RankBridge.Proto.V1
  alias RankBridge.Transport.Status

  @hosts ["a", "a", "b", "b"]

  defstruct [:ranks, :rank, :answer, transport: __MODULE__]

  @doc "Starts four ranks that know \"world\"."
  @spec start_link(keyword()) :: Agent.on_start()
  def start_link(_opts) do
    groups = Map.new(0..3, &{&1, %{"world" => [0, 1, 2, 3]}})
    has = Map.new(0..3, &{&1, []})
    Agent.start_link(fn -> %{groups: groups, has: has, failures: %{}, gone: [], asked: []} end)
  end

  @doc "Options of a gang of these ranks."
  @spec gang(pid()) :: keyword()
  def gang(ranks) do
    key = ranks |> :erlang.pid_to_list() |> List.to_string()
    [endpoints: for(rank <- 0..3, do: "#{key}/#{rank}"), transport: __MODULE__, form: false]
  end

  @doc "Lets a method fail for a name on every rank, or on one: with this code, indefinite or not."
  @spec fail(pid(), atom(), String.t(), atom(), keyword()) :: :ok
  def fail(ranks, method, name, code, opts \\ []) do
    on = List.wrap(opts[:rank] || Enum.to_list(0..3))
    error = %V1.Error{code: code, message: "told to fail", indefinite: opts[:indefinite] || false}
    failures = for rank <- on, into: %{}, do: {{rank, method, name}, error}
    Agent.update(ranks, &%{&1 | failures: Map.merge(&1.failures, failures)})
  end

  @doc "Lets a rank not be reached."
  @spec lose(pid(), non_neg_integer()) :: :ok
  def lose(ranks, rank), do: Agent.update(ranks, &%{&1 | gone: [rank | &1.gone]})

  @doc "Lets a rank know a group."
  @spec know(pid(), non_neg_integer(), String.t(), [non_neg_integer()]) :: :ok
  def know(ranks, rank, group, members),
    do: Agent.update(ranks, &put_in(&1.groups[rank][group], members))

  @doc "The groups that a rank knows, by name."
  @spec known(pid(), non_neg_integer()) :: %{String.t() => [non_neg_integer()]}
  def known(ranks, rank), do: Agent.get(ranks, & &1.groups[rank])

  @doc "The names of the queues and graphs that a rank has."
  @spec has(pid(), non_neg_integer()) :: [String.t()]
  def has(ranks, rank), do: Agent.get(ranks, & &1.has[rank])

  @doc "The names for which a rank was asked for a method, in order."
  @spec asked(pid(), atom(), non_neg_integer()) :: [String.t()]
  def asked(ranks, method, rank) do
    Agent.get(ranks, fn state ->
      for {^rank, ^method, group} <- Enum.reverse(state.asked), do: group
    end)
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
    method = path |> Path.basename() |> Macro.underscore() |> String.to_existing_atom()
    bytes = IO.iodata_to_binary(request)
    answer = Agent.get_and_update(channel.ranks, &answer(&1, channel.rank, method, bytes))
    %{channel | answer: answer}
  end

  @doc false
  def await(%__MODULE__{answer: answer}), do: answer

  defp answer(state, rank, method, bytes) do
    request = request(method, bytes)
    group = group(request)
    state = %{state | asked: [{rank, method, group} | state.asked]}

    cond do
      rank in state.gone ->
        {{:error, %Status{code: :unavailable, message: "gone", sent?: false}}, state}

      error = state.failures[{rank, method, group}] ->
        {encoded(%{response(method) | outcome: {:error, error}}), state}

      true ->
        {response, state} = handle(method, request, rank, state)
        {encoded(response), state}
    end
  end

  defp encoded(%module{} = response), do: {:ok, module.encode(response)}

  defp request(:describe_rank, _bytes), do: nil
  defp request(:describe_group, bytes), do: V1.DescribeGroupRequest.decode(bytes)
  defp request(:new_group, bytes), do: V1.NewGroupRequest.decode(bytes)
  defp request(:destroy_group, bytes), do: V1.DestroyGroupRequest.decode(bytes)
  defp request(:new_queue, bytes), do: V1.NewQueueRequest.decode(bytes)
  defp request(:shut_down_queue, bytes), do: V1.ShutDownQueueRequest.decode(bytes)
  defp request(:begin_capture, bytes), do: V1.BeginCaptureRequest.decode(bytes)
  defp request(:end_capture, bytes), do: V1.EndCaptureRequest.decode(bytes)
  defp request(:release_graph, bytes), do: V1.ReleaseGraphRequest.decode(bytes)
  defp request(_session, _bytes), do: nil

  defp group(%V1.DestroyGroupRequest{call: call}), do: call.group
  defp group(%V1.EndCaptureRequest{call: call}), do: call.group
  defp group(%V1.ShutDownQueueRequest{queue: queue}), do: queue
  defp group(%{graph: graph}), do: graph
  defp group(%{name: name}), do: name
  defp group(nil), do: nil

  defp response(:new_group), do: %V1.NewGroupResponse{}
  defp response(:destroy_group), do: %V1.DestroyGroupResponse{}
  defp response(:new_queue), do: %V1.NewQueueResponse{}
  defp response(:shut_down_queue), do: %V1.ShutDownQueueResponse{}
  defp response(:begin_capture), do: %V1.BeginCaptureResponse{}
  defp response(:end_capture), do: %V1.EndCaptureResponse{}
  defp response(:release_graph), do: %V1.ReleaseGraphResponse{}

  defp handle(:describe_rank, _request, rank, state) do
    groups = for {name, ranks} <- state.groups[rank], do: group_of(name, ranks, rank)

    {%V1.DescribeRankResponse{
       rank: rank,
       world_size: 4,
       host: Enum.at(@hosts, rank),
       local_rank: rem(rank, 2),
       generation: 3,
       generation_state: :GENERATION_STATE_FORMED,
       groups: groups
     }, state}
  end

  defp handle(:describe_group, request, rank, state) do
    case state.groups[rank][request.name] do
      nil ->
        {%V1.DescribeGroupResponse{outcome: {:error, unknown()}}, state}

      ranks ->
        {%V1.DescribeGroupResponse{outcome: {:group, group_of(request.name, ranks, rank)}}, state}
    end
  end

  defp handle(:new_group, request, rank, state) do
    state = put_in(state.groups[rank][request.name], request.ranks)
    group = group_of(request.name, request.ranks, rank)
    {%V1.NewGroupResponse{outcome: {:group, group}}, state}
  end

  defp handle(:destroy_group, request, rank, state) do
    {ranks, state} = pop_in(state.groups[rank][request.call.group])

    if ranks do
      group = group_of(request.call.group, ranks, rank)
      {%V1.DestroyGroupResponse{outcome: {:group, group}}, state}
    else
      {%V1.DestroyGroupResponse{outcome: {:error, unknown()}}, state}
    end
  end

  defp handle(:new_queue, request, rank, state) do
    queue = %V1.Queue{name: request.name, group: request.call.group, reader_ranks_in_group: [1]}
    {%V1.NewQueueResponse{outcome: {:queue, queue}}, add_name(state, rank, request.name)}
  end

  defp handle(:shut_down_queue, request, rank, state) do
    {outcome, state} = given_up(state, rank, request.queue, :ERROR_CODE_UNKNOWN_QUEUE)
    outcome = with :ok <- outcome, do: {:queue, %V1.Queue{name: request.queue}}
    {%V1.ShutDownQueueResponse{outcome: outcome}, state}
  end

  defp handle(:begin_capture, request, rank, state) do
    graph = %V1.Graph{name: request.graph, group: request.call.group}
    {%V1.BeginCaptureResponse{outcome: {:graph, graph}}, add_name(state, rank, request.graph)}
  end

  # There is one recording at a time.
  defp handle(:end_capture, request, rank, state) do
    outcome =
      case state.has[rank] do
        [name | _others] -> {:graph, %V1.Graph{name: name, group: request.call.group}}
        [] -> {:error, unknown(:ERROR_CODE_UNKNOWN_GRAPH)}
      end

    {%V1.EndCaptureResponse{outcome: outcome}, state}
  end

  defp handle(:release_graph, request, rank, state) do
    {outcome, state} = given_up(state, rank, request.graph, :ERROR_CODE_UNKNOWN_GRAPH)
    outcome = with :ok <- outcome, do: {:graph, %V1.Graph{name: request.graph, group: "world"}}
    {%V1.ReleaseGraphResponse{outcome: outcome}, state}
  end

  defp handle(:open_session, _request, _rank, state),
    do: {%V1.OpenSessionResponse{outcome: {:session_id, "s"}}, state}

  defp handle(:close_session, _request, _rank, state),
    do: {%V1.CloseSessionResponse{outcome: {:released, 0}}, state}

  defp add_name(state, rank, name), do: update_in(state.has[rank], &[name | &1])

  defp given_up(state, rank, name, code) do
    if name in state.has[rank],
      do: {:ok, update_in(state.has[rank], &List.delete(&1, name))},
      else: {{:error, unknown(code)}, state}
  end

  defp unknown(code \\ :ERROR_CODE_UNKNOWN_GROUP),
    do: %V1.Error{code: code, message: "no such thing"}

  defp group_of(name, ranks, rank) do
    place = Enum.find_index(ranks, &(&1 == rank))
    %V1.Group{name: name, ranks: ranks, rank_in_group: place, backend: "fake", generation: 3}
  end
end
