defmodule RankBridge.Sessions do
  @moduledoc "The session of a gang: opened and closed on every rank under the same id."

  alias RankBridge.{Calls, Error}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1

  @doc "Opens the view's session on every rank."
  @spec open(View.t()) :: :ok | {:error, Error.t()}
  def open(%View{session_id: ""}), do: :ok

  def open(view) do
    request = %V1.OpenSessionRequest{session_id: view.session_id}
    everywhere(view, V1.RefService.open_session(), "open_session", request, view.timeout)
  end

  @doc "Closes the view's session on every rank, and frees its refs. `timeout` in milliseconds."
  @spec close(View.t(), pos_integer()) :: :ok | {:error, Error.t()}
  def close(%View{session_id: ""}, _timeout), do: :ok

  def close(view, timeout) do
    request = %V1.CloseSessionRequest{session_id: view.session_id}
    everywhere(view, V1.RefService.close_session(), "close_session", request, timeout)
  end

  defp everywhere(view, rpc, operation, request, timeout) do
    call = %Calls{rpc: rpc, operation: operation, deadline: timeout}
    requests = for rank <- View.all_ranks(view), do: {rank, request}
    with {:ok, _values} <- Calls.all(view, requests, call), do: :ok
  end
end
