defmodule Snakepit.Error do
  @moduledoc "Stands in for the struct of that name."

  @type category :: :worker | :timeout | :python_error | :grpc_error | :validation | :pool

  @type t :: %__MODULE__{
          category: category(),
          message: String.t(),
          details: map(),
          python_traceback: String.t() | nil,
          grpc_status: atom() | nil
        }

  @enforce_keys [:category, :message, :details]
  defstruct [:category, :message, :details, :python_traceback, :grpc_status]
end
