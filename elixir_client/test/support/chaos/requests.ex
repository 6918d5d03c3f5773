defmodule RankBridge.Test.Chaos.Requests do
  @moduledoc """
  What a controller of `make chaos` can be asked for. Times are in milliseconds. A `gang` is a name that the asker
  chose; tensors come and go as files of raw elements.

  | do | with | gives |
  | --- | --- | --- |
  | connect | gang, targets, lease | id of the gang's session |
  | close | gang | null |
  | put | gang, rank, dtype, shape, file | a ref |
  | get | gang, ref, file | dtype, shape |
  | create | gang, rank, number | refs of so many tensors of one byte |
  | release | gang, refs | how many were freed |
  | call | gang, rank, operation, ref, options | a ref, or null: one rank's part of a collective |
  | call_all | gang, operation, refs, options | a ref or null for each member, or null |
  | await | gang, rank, operation_id, timeout | as call |
  | form | gang | number of the generation |
  | rejoin | gang | null: its session is open on every rank again, after somebody else formed a generation |
  | held | | processes and ports of this program |
  """

  alias RankBridge.{Error, Gang, Ref, Sessions, Tensor}
  alias RankBridge.Gang.View
  alias RankBridge.Test.Chaos.Forms
  alias RankBridge.Test.ContractCases

  @type request :: %{String.t() => term()}

  @doc "Starts what keeps the gangs: they outlive the requests that connect them."
  @spec start_gangs() :: Supervisor.on_start()
  def start_gangs, do: DynamicSupervisor.start_link(strategy: :one_for_one, name: __MODULE__)

  @doc "Does what a request asks for."
  @spec perform(request()) :: {:ok, term()} | {:error, request()}
  def perform(%{"do" => what} = request) do
    case perform(what, request) do
      {:ok, value} -> {:ok, value}
      {:error, %Error{} = error} -> {:error, Forms.error(error)}
    end
  end

  defp perform("connect", request) do
    gang = gang(request)
    # The judge says which calls are gang calls.
    targets = request["targets"]
    opts = [name: gang, endpoints: targets, lease: request["lease"], calls: :ranks]
    spec = Supervisor.child_spec({Gang, opts}, restart: :temporary)

    with {:ok, _pid} <- DynamicSupervisor.start_child(__MODULE__, spec),
         {:error, error} <- Gang.session_id(gang) do
      # It would go on trying.
      :ok = Gang.stop(gang)
      {:error, error}
    end
  end

  defp perform("close", request) do
    :ok = Gang.stop(gang(request))
    {:ok, nil}
  end

  defp perform("put", request) do
    dtype = String.to_atom(request["dtype"])
    tensor = Tensor.new!(dtype, request["shape"], File.read!(request["file"]))
    request |> gang() |> RankBridge.put_rank(request["rank"], tensor) |> given()
  end

  defp perform("get", request) do
    with {:ok, tensor} <- RankBridge.get(gang(request), Forms.to_ref(request["ref"])) do
      File.write!(request["file"], tensor.data)
      {:ok, %{"dtype" => "#{tensor.dtype}", "shape" => tensor.shape}}
    end
  end

  defp perform("create", request) do
    for _one <- 1..request["number"]//1, reduce: {:ok, []} do
      {:ok, refs} ->
        with {:ok, ref} <- RankBridge.create(gang(request), :uint8, [1], rank: request["rank"]),
             do: {:ok, [Forms.ref(ref) | refs]}

      error ->
        error
    end
  end

  defp perform("release", request),
    do: RankBridge.release(gang(request), Enum.map(request["refs"], &Forms.to_ref/1))

  defp perform("call", request) do
    %{"rank" => rank, "options" => options} = request
    ref = request["ref"] && Forms.to_ref(request["ref"])
    operation = ContractCases.operation(request)

    request
    |> gang()
    |> RankBridge.Operations.call_rank(rank, operation, ref, ContractCases.options(options))
    |> given()
  end

  defp perform("call_all", request) do
    refs = if request["refs"], do: [Enum.map(request["refs"], &Forms.to_ref/1)], else: []
    arguments = [gang(request)] ++ refs ++ [ContractCases.options(request["options"])]
    RankBridge |> apply(ContractCases.operation(request), arguments) |> given()
  end

  defp perform("await", request) do
    opts = [rank: request["rank"], timeout: request["timeout"]]

    case RankBridge.await(gang(request), request["operation_id"], opts) do
      {:ok, [ref]} -> given({:ok, ref})
      other -> given(other)
    end
  end

  defp perform("form", request) do
    with {:ok, formed} <- RankBridge.form(gang(request)), do: {:ok, formed.generation}
  end

  defp perform("rejoin", request) do
    with {:ok, view} <- View.fetch(gang(request)),
         :ok <- Sessions.open(view, true),
         do: {:ok, nil}
  end

  defp perform("held", _request) do
    {:ok,
     %{
       "processes" => :erlang.system_info(:process_count),
       "ports" => :erlang.system_info(:port_count)
     }}
  end

  defp gang(request), do: String.to_atom(request["gang"])

  defp given({:ok, refs}) when is_list(refs), do: {:ok, Enum.map(refs, &(&1 && Forms.ref(&1)))}
  defp given({:ok, %Ref{} = ref}), do: {:ok, Forms.ref(ref)}
  defp given({:ok, nil}), do: {:ok, nil}
  defp given(:ok), do: {:ok, nil}
  defp given({:error, error}), do: {:error, error}
end
