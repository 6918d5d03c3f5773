defmodule RankBridge.Sessions do
  @moduledoc false
  # The session of a gang: opened, renewed and closed on every rank under the same id.

  alias RankBridge.{Calls, Error}
  alias RankBridge.Gang.View
  alias RankBridge.Proto.V1

  @doc """
  Opens the view's session on every rank. Where it is open it stays as it is.

  `wait_for_ready?` waits for ranks that cannot be reached yet, as those that were just replaced.
  """
  @spec open(View.t(), boolean()) :: :ok | {:error, Error.t()}
  def open(view, wait_for_ready? \\ false)
  def open(%View{session_id: ""}, _wait_for_ready?), do: :ok

  def open(view, wait_for_ready?) do
    call = %Calls{
      rpc: V1.RefService.open_session(),
      operation: "open_session",
      deadline: view.timeout,
      wait_for_ready?: wait_for_ready?
    }

    request = %V1.OpenSessionRequest{session_id: view.session_id, lease_ms: view.lease}
    everywhere(view, request, call)
  end

  @doc "Milliseconds from one renewing to the next: a third of the lease; nil: nothing is to be renewed."
  @spec renewal_period(View.t()) :: pos_integer() | nil
  def renewal_period(%View{session_id: id, lease: lease}) when id == "" or lease == 0, do: nil
  def renewal_period(%View{lease: lease}), do: max(1, div(lease, 3))

  @doc "Keeps the view's session on every rank for another lease. `timeout` in milliseconds."
  @spec renew(View.t(), pos_integer()) :: :ok | {:error, Error.t()}
  def renew(view, timeout) do
    call = %Calls{
      rpc: V1.RefService.renew_session(),
      operation: "renew_session",
      deadline: timeout,
      changes?: false
    }

    everywhere(view, %V1.RenewSessionRequest{session_id: view.session_id}, call)
  end

  @doc "Closes the view's session on every rank, and frees its refs. `timeout` in milliseconds."
  @spec close(View.t(), pos_integer()) :: :ok | {:error, Error.t()}
  def close(%View{session_id: ""}, _timeout), do: :ok

  def close(view, timeout) do
    call = %Calls{
      rpc: V1.RefService.close_session(),
      operation: "close_session",
      deadline: timeout
    }

    everywhere(view, %V1.CloseSessionRequest{session_id: view.session_id}, call)
  end

  defp everywhere(view, request, call) do
    requests = for rank <- View.all_ranks(view), do: {rank, request}
    with {:ok, _values} <- Calls.all(view, requests, call), do: :ok
  end
end
