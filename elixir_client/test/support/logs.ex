defmodule RankBridge.Test.Logs do
  @moduledoc "Where logs go: to a test, or to standard error."

  @doc "Sends the calling process `{:logged, event}` for what is logged, and logs it nowhere else. Returns what undoes that."
  @spec to_test() :: (() -> :ok)
  def to_test do
    handlers = take()
    # What begins well is no news.
    config = %{level: :notice, config: %{test: self()}}
    :ok = :logger.add_handler(__MODULE__, __MODULE__, config)

    fn ->
      :ok = :logger.remove_handler(__MODULE__)
      for config <- handlers, do: :ok = :logger.add_handler(config.id, config.module, config)
      :ok
    end
  end

  @doc "Logs to standard error alone from now on."
  @spec to_stderr() :: :ok
  def to_stderr do
    _handlers = take()
    config = %{level: :notice, config: %{type: :standard_error}}
    :logger.add_handler(:default, :logger_std_h, config)
  end

  @doc false
  @spec log(:logger.log_event(), map()) :: term()
  def log(event, %{config: %{test: test}}), do: send(test, {:logged, event})

  defp take do
    for %{id: id} = config <- :logger.get_handler_config() do
      :ok = :logger.remove_handler(id)
      config
    end
  end
end
