defmodule RankBridge.Hold.Asking do
  @moduledoc false
  # What a hold asks its ranks.

  alias RankBridge.{Calls, Entry, Error, Gang, HeldCall, Hold, Inspection, Options}
  alias RankBridge.Hold.Keeper
  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.Rpc

  @enforce_keys [:hold, :view, :operation, :opts, :timeout]
  defstruct @enforce_keys

  @typedoc "What all that one function asks has in common; `opts` are its options."
  @type t :: %__MODULE__{
          hold: Hold.t(),
          view: Gang.View.t(),
          operation: String.t(),
          opts: map(),
          timeout: pos_integer()
        }

  @type result(value) :: {:ok, value} | {:error, Error.t()}

  @doc "Calls `fun` for a function on a hold."
  @spec enter(Hold.t(), atom(), term(), keyword(), (t() -> result(value))) :: result(value)
        when value: term()
  def enter(hold, operation, opts, defaults, fun) do
    name = Atom.to_string(operation)

    Entry.call(hold.gang, operation, opts, fn view ->
      with {:ok, opts} <- Options.read(opts, defaults, name) do
        timeout = opts.timeout || view.timeout

        %__MODULE__{hold: hold, view: view, operation: name, opts: opts, timeout: timeout}
        |> fun.()
        |> named(name)
      end
    end)
  end

  @doc "A result whose error names the function, if it is this client's."
  @spec named(result, String.t()) :: result when result: result(term())
  def named({:error, %Error{operation: ""} = error}, name),
    do: {:error, %{error | operation: name}}

  def named(result, _name), do: result

  @doc "The calls that the breakpoint holds, by rank."
  @spec held(t()) :: result([HeldCall.t()])
  def held(%__MODULE__{hold: hold} = asking) do
    with {:ok, ended} <- Keeper.ended(hold.keeper),
         ranks = Enum.reject(hold.ranks, &is_map_key(ended, &1)),
         requests = for(rank <- ranks, do: {rank, %V1.ListHeldRequest{}}),
         call = call(asking, V1.HoldService.list_held(), false),
         {:ok, answers} <- Calls.all(asking.view, requests, call) do
      {:ok,
       for {rank, %{calls: calls}} <- Enum.zip(ranks, answers),
           it <- calls,
           it.breakpoint == hold.numbers[rank] do
         HeldCall.from_proto(it)
       end}
    end
  end

  @doc "Looks at held calls. Those that have gone on meanwhile are left out."
  @spec inspect_held(t(), [HeldCall.t()], V1.InspectRequest.t()) :: result([Inspection.t()])
  def inspect_held(asking, calls, request) do
    call = call(asking, V1.HoldService.inspect(), false)
    results = Calls.each(asking.view, requests(calls, request), call)

    with {:ok, looks} <- still_held(results, false) do
      read = Enum.map(looks, &Inspection.from_proto/1)

      with nil <- Enum.find(read, &match?({:error, _error}, &1)),
           do: {:ok, for({:ok, inspection} <- read, do: inspection)}
    end
  end

  @doc "Lets held calls go. Gives how many they were: those that have gone on meanwhile are left out."
  @spec release(t(), [HeldCall.t()], V1.Action.t()) :: result(non_neg_integer())
  def release(asking, calls, action) do
    request = %V1.ReleaseRequest{action: action, message: Map.get(asking.opts, :message, "")}
    call = call(asking, V1.HoldService.release(), true)
    results = Calls.each(asking.view, requests(calls, request), call)

    gone =
      for {held, {rank, {:ok, _released}}} <- Enum.zip(calls, results), do: {rank, held.held_id}

    with :ok <- Keeper.released(asking.hold.keeper, gone),
         {:ok, released} <- still_held(results, true),
         do: {:ok, released |> Enum.map(& &1.calls) |> Enum.sum()}
  end

  @spec call(t(), Rpc.t(), boolean()) :: Calls.t()
  defp call(asking, rpc, changes?) do
    %Calls{
      rpc: rpc,
      operation: asking.operation,
      deadline: asking.timeout,
      changes?: changes?
    }
  end

  defp requests(calls, request),
    do: for(call <- calls, do: {call.rank, %{request | held_id: call.held_id}})

  defp still_held(results, changes?) do
    results
    |> Enum.reject(&match?({_rank, {:error, %Error{reason: :unknown_operation}}}, &1))
    |> Calls.gathered(changes?)
  end
end
