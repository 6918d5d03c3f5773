defmodule SnakeBridge.RuntimeClient do
  @moduledoc "Stands in for the behaviour of that name: what SnakeBridge hands its calls to."

  @callback execute(tool :: String.t(), payload :: map(), opts :: keyword()) ::
              {:ok, term()} | {:error, Snakepit.Error.t()}

  @callback execute_stream(
              tool :: String.t(),
              payload :: map(),
              callback :: (term() -> any()),
              opts :: keyword()
            ) :: :ok | {:error, Snakepit.Error.t()}
end
