if Code.ensure_loaded?(SnakeBridge.RuntimeClient) do
  defmodule RankBridge.SnakeBridge.RuntimeClient do
    @moduledoc """
    SnakeBridge's runtime client on a gang: an application changes its configuration, and no call.

        config :snakebridge, runtime_client: RankBridge.SnakeBridge.RuntimeClient
        config :rank_bridge, gang: MyGang, pools: [rank_0: 0, rank_1: 1]

    It is there where SnakeBridge was compiled before. `RankBridge.SnakeBridge.Calls` says which calls are ours; the others go on unchanged
    to `config :rank_bridge, snakebridge_fallback: Module`, which is Snakepit by default.

    Answers are wire maps, which SnakeBridge decodes: integers are integers, `None` is nil. Errors are `Snakepit.Error`,
    whose category says what happened (see `category/1`) and whose `details` have the fields of the `RankBridge.Error`.
    Calls run in their caller's process; what is over its time, or whose caller dies, is withdrawn on its rank.
    """

    @behaviour SnakeBridge.RuntimeClient

    alias RankBridge.Error
    alias RankBridge.SnakeBridge.Calls

    @timeouts [:peer_missing, :deadline_exceeded]
    @workers [:peer_lost, :unavailable, :stale_generation, :not_formed, :forming_failed, :aborted]
    @python [:function_failed, :backend_failed, :internal, :unspecified]
    @grpc [:cancelled, :not_allowed, :protocol]

    @doc "Answers a call of SnakeBridge, or has the fallback answer it."
    @impl true
    @spec execute(String.t(), map(), keyword()) :: {:ok, term()} | {:error, Snakepit.Error.t()}
    def execute("snakebridge.release_session" = tool, payload, opts) do
      # Snakepit may have refs of that session, too, if it is there.
      with {:ok, count} <- Calls.release_session(payload["session_id"]) do
        if fallback(), do: pass_on(tool, payload, opts), else: {:ok, count}
      else
        {:error, error} -> {:error, translated(error)}
      end
    end

    def execute(tool, payload, opts) do
      case Calls.execute(tool, payload, opts || []) do
        {:ok, wire} -> {:ok, wire}
        {:error, error} -> {:error, translated(error)}
        :theirs -> pass_on(tool, payload, opts)
      end
    end

    @doc "Answers a call item by item: see `RankBridge.SnakeBridge.Calls.stream/3`."
    @impl true
    @spec execute_stream(String.t(), map(), (term() -> term()), keyword()) ::
            :ok | {:error, Snakepit.Error.t()}
    def execute_stream(tool, payload, callback, opts) do
      case Calls.stream(payload, callback, opts || []) do
        :ok -> :ok
        {:error, error} -> {:error, translated(error)}
        :theirs -> pass_on_stream(tool, payload, callback, opts)
      end
    end

    defp pass_on(tool, payload, opts) do
      if module = fallback(),
        do: module.execute(tool, payload, opts),
        else: {:error, no_fallback(payload)}
    end

    defp pass_on_stream(tool, payload, callback, opts) do
      if module = fallback(),
        do: module.execute_stream(tool, payload, callback, opts),
        else: {:error, no_fallback(payload)}
    end

    defp fallback do
      module = Application.get_env(:rank_bridge, :snakebridge_fallback, Snakepit)
      if Code.ensure_loaded?(module), do: module
    end

    defp no_fallback(payload) do
      name = payload["class"] || payload["function"] || payload["attr"] || payload["helper"]
      python_module = payload["module_path"] || payload["python_module"] || payload["library"]

      %Snakepit.Error{
        category: :pool,
        message:
          "#{python_module}.#{name} runs on no rank, and there is no Snakepit to pass it on to",
        details: %{reason: :unsupported_operation}
      }
    end

    defp translated(%Error{} = error) do
      %Snakepit.Error{
        category: category(error.reason),
        message: Exception.message(error),
        python_traceback: error.raised && error.raised.traceback,
        details: error |> Map.from_struct() |> Map.drop([:message, :__exception__]),
        grpc_status: if(category(error.reason) == :grpc_error, do: status(error.reason))
      }
    end

    @doc """
    The category of an error's reason.

      * `:timeout` - someone did not come in time, or the answer did not: nothing of it will happen later
      * `:worker` - a rank is lost or cannot be reached, or its generation is over
      * `:python_error` - a function raised, or the backend failed
      * `:grpc_error` - it was cancelled, not allowed, or not understood
      * `:pool` - there is no room on the rank
      * `:validation` - anything else: the call itself is wrong
    """
    @spec category(Error.reason()) :: Snakepit.Error.category()
    def category(reason) when reason in @timeouts, do: :timeout
    def category(reason) when reason in @workers, do: :worker
    def category(reason) when reason in @python, do: :python_error
    def category(reason) when reason in @grpc, do: :grpc_error
    def category(:resource_exhausted), do: :pool
    def category(_reason), do: :validation

    defp status(:cancelled), do: :cancelled
    defp status(:not_allowed), do: :permission_denied
    defp status(:protocol), do: :unknown
  end
end
