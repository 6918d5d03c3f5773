defmodule RankBridge.Test.ScriptedRanks do
  @moduledoc """
  Ranks that know groups and nothing else, within this VM: a transport that answers by itself, and can be told to fail.

  A group is made on one rank as soon as that rank is asked: nothing here waits for the other ranks.
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
    Agent.start_link(fn -> %{groups: groups, failures: %{}, gone: [], asked: []} end)
  end

  @doc "Options of a gang of these ranks."
  @spec gang(pid()) :: keyword()
  def gang(ranks) do
    key = ranks |> :erlang.pid_to_list() |> List.to_string()
    [endpoints: for(rank <- 0..3, do: "#{key}/#{rank}"), transport: __MODULE__, form: false]
  end

  @doc "Lets a method fail for a group on every rank, or on one: with this code, indefinite or not."
  @spec fail(pid(), atom(), String.t(), atom(), keyword()) :: :ok
  def fail(ranks, method, group, code, opts \\ []) do
    on = List.wrap(opts[:rank] || Enum.to_list(0..3))
    error = %V1.Error{code: code, message: "told to fail", indefinite: opts[:indefinite] || false}
    failures = for rank <- on, into: %{}, do: {{rank, method, group}, error}
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

  @doc "The groups for which a rank was asked for a method, in order."
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
  defp request(_session, _bytes), do: nil

  defp group(%V1.DestroyGroupRequest{call: call}), do: call.group
  defp group(%{name: name}), do: name
  defp group(nil), do: nil

  defp response(:new_group), do: %V1.NewGroupResponse{}
  defp response(:destroy_group), do: %V1.DestroyGroupResponse{}

  defp handle(:describe_rank, _request, rank, state) do
    groups = for {name, ranks} <- state.groups[rank], do: told(name, ranks, rank)

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
        {%V1.DescribeGroupResponse{outcome: {:group, told(request.name, ranks, rank)}}, state}
    end
  end

  defp handle(:new_group, request, rank, state) do
    state = put_in(state.groups[rank][request.name], request.ranks)
    group = told(request.name, request.ranks, rank)
    {%V1.NewGroupResponse{outcome: {:group, group}}, state}
  end

  defp handle(:destroy_group, request, rank, state) do
    {ranks, state} = pop_in(state.groups[rank][request.call.group])

    if ranks do
      group = told(request.call.group, ranks, rank)
      {%V1.DestroyGroupResponse{outcome: {:group, group}}, state}
    else
      {%V1.DestroyGroupResponse{outcome: {:error, unknown()}}, state}
    end
  end

  defp handle(:open_session, _request, _rank, state),
    do: {%V1.OpenSessionResponse{outcome: {:session_id, "s"}}, state}

  defp handle(:close_session, _request, _rank, state),
    do: {%V1.CloseSessionResponse{outcome: {:released, 0}}, state}

  defp unknown, do: %V1.Error{code: :ERROR_CODE_UNKNOWN_GROUP, message: "no such group"}

  defp told(name, ranks, rank) do
    place = Enum.find_index(ranks, &(&1 == rank))
    %V1.Group{name: name, ranks: ranks, rank_in_group: place, backend: "fake", generation: 3}
  end
end
