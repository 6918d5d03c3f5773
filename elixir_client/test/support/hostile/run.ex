defmodule RankBridge.Test.Hostile.Run do
  @moduledoc "Runs this client against a hostile server, and checks what a `Case` expects."

  import ExUnit.Assertions

  alias RankBridge.Test.Hostile.{Case, Server}
  alias RankBridge.Transport

  @path "/hostile.Server/Call"
  # Milliseconds for what must come at once, on a busy machine.
  @patience 10_000

  @doc "Plays a case and checks the call's end, what the server saw, and that the channel goes on."
  @spec check(Case.t()) :: :ok
  def check(kase) do
    server = Server.start(kase)
    channel = connect(server, kase.opts)
    result = call(channel, kase.timeout)
    assert brief(result) == kase.call, "the call ended with #{inspect(result)}"
    with {:error, status} <- result, do: assert(String.valid?(status.message))
    check_wire(kase.wire, server, channel)
    if kase.sees, do: await(server, kase.sees)
    Transport.close(channel)
    Server.stop(server)
  end

  @doc "A channel to a hostile server, which connects again almost at once."
  @spec connect(Server.t(), keyword()) :: Transport.channel()
  def connect(server, opts \\ []) do
    opts = Keyword.merge([lazy: true, owner: self(), backoff: {1, 5}], opts)
    {:ok, channel} = Transport.connect(server.target, opts)
    channel
  end

  @doc "The call that cases answer."
  @spec call(Transport.channel(), pos_integer(), keyword()) :: Transport.result()
  def call(channel, timeout, opts \\ []),
    do: Transport.unary(channel, @path, "hello", [timeout: timeout] ++ opts)

  @doc "A result as cases have it."
  @spec brief(Transport.result()) :: {:ok, binary()} | {:error, atom(), boolean()}
  def brief({:ok, message}), do: {:ok, message}
  def brief({:error, status}), do: {:error, status.code, status.sent?}

  defp check_wire(:any, _server, _channel), do: :ok

  defp check_wire(:kept, server, channel) do
    assert probe(channel) == {:ok, "good on 1"}
    %{ref: ref} = server
    refute_received {^ref, 1, {:goaway, _last_id, _code, _why}}
  end

  defp check_wire(:replaced, _server, channel),
    do: assert(probe(channel) == {:ok, "good on 2"})

  defp check_wire({:stream, code}, server, channel) do
    await(server, {:rst_stream, 1, code})
    check_wire(:kept, server, channel)
  end

  defp check_wire({:connection, code}, %{ref: ref}, channel) do
    assert_receive {^ref, 1, {:goaway, 0, got, _why}}, @patience
    assert got == code
    assert probe(channel) == {:ok, "good on 2"}
  end

  defp probe(channel), do: call(channel, @patience, wait_for_ready: true)

  defp await(%{ref: ref}, frame), do: assert_receive({^ref, 1, ^frame}, @patience)
end
