defmodule RankBridge.Transport.Hostile.PropertyTest do
  @moduledoc """
  Good conversations of servers with random things wrong. The seeds follow from ExUnit's, so `mix test --seed` repeats a run; and a
  failure names its own, which `HOSTILE_SEED` repeats alone.
  """

  # Processes, ports and the log are compared before and after.
  use ExUnit.Case, async: false

  alias RankBridge.Test.Hostile.{Bystander, Case, Mutation, Run, Server, VM}
  alias RankBridge.Transport
  alias RankBridge.Transport.HTTP2.{Frame, Protocol, Request}

  # Milliseconds: of a call, and of what a busy machine may need beyond that.
  @deadline 250
  @late 10_000
  # The memory that tests of this size may leave for a while, in bytes.
  @memory 16_777_216

  defp seeds(count) do
    case System.get_env("HOSTILE_SEED") do
      nil -> Enum.map(1..count, &(&1 + 1_000_000 * ExUnit.configuration()[:seed]))
      seed -> [String.to_integer(seed)]
    end
  end

  test "whatever a server sends, the call ends by its deadline, and nothing else is harmed" do
    bystander = start_supervised!(Bystander)
    assert {before, []} = Bystander.calls(bystander)
    [first | rounds] = seeds(240) |> Enum.chunk_every(60)
    VM.unharmed(fn -> play(first) end)
    memory = memory()

    atoms =
      for round <- rounds do
        atoms = :erlang.system_info(:atom_count)
        VM.unharmed(fn -> play(round) end)
        :erlang.system_info(:atom_count) - atoms
      end

    # A module that is loaded late makes atoms once; what servers send makes none.
    assert rounds == [] or 0 in atoms, inspect(atoms)
    assert memory() - memory < @memory
    assert {calls, []} = Bystander.calls(bystander)
    assert calls > before + 10
  end

  defp play(seeds) do
    seeds
    |> Task.async_stream(&play_one/1, max_concurrency: 8, timeout: 60_000)
    |> Enum.each(fn {:ok, :ok} -> :ok end)
  end

  defp play_one(seed) do
    Mutation.seed(seed)
    conversation = Mutation.mutated()
    ending = Enum.random([[], [], [:close], [:reset]])
    steps = if :rand.uniform(4) == 1, do: [{:drip, conversation}], else: conversation
    server = Server.start(%Case{name: "", section: "", play: steps ++ ending})
    channel = Run.connect(server)
    began = now()
    result = Run.call(channel, @deadline)
    took = now() - began
    message = "HOSTILE_SEED=#{seed}: #{inspect(result)} after #{took} ms, of #{inspect(steps)}"
    assert took < @deadline + @late, message

    case result do
      {:ok, text} ->
        assert is_binary(text), message

      {:error, %Transport.Status{} = status} ->
        assert status.code != :ok and String.valid?(status.message), message
    end

    Transport.close(channel)
    Server.stop(server)
  end

  test "no bytes raise in the protocol, and each stream has one end" do
    for seed <- seeds(1_500) do
      Mutation.seed(seed)
      bytes = IO.iodata_to_binary([Mutation.mutated(), Mutation.mutated()])
      {_out, _bytes, [], protocol} = Protocol.take(Protocol.new())
      protocol = Protocol.receive_bytes(protocol, Frame.settings([]))
      refs = [make_ref(), make_ref()]
      request = %Request{block: fn -> "" end, caller: self(), data: ["x"], bytes: 1}
      protocol = Enum.reduce(refs, protocol, &Protocol.open(&2, &1, request))
      {_out, _bytes, [], protocol} = Protocol.take(protocol)
      events = feed(protocol, bytes, [])
      message = "HOSTILE_SEED=#{seed}: #{inspect(events)}"

      for ref <- refs do
        ends = for {^ref, event} <- events, final?(event), do: event
        assert length(ends) == 1, message
      end
    end
  end

  # Cut anywhere; and at the end the connection is lost.
  defp feed(protocol, "", events) do
    {_out, _bytes, last, protocol} =
      protocol |> Protocol.terminate({:lost, "over"}) |> Protocol.take()

    assert Protocol.stream_count(protocol) == 0
    events ++ last
  end

  defp feed(protocol, bytes, events) do
    size = min(byte_size(bytes), :rand.uniform(60))
    <<head::binary-size(size), rest::binary>> = bytes
    {_out, _bytes, more, protocol} = protocol |> Protocol.receive_bytes(head) |> Protocol.take()
    feed(protocol, rest, events ++ more)
  end

  defp final?({:headers, _headers, end?}), do: end?
  defp final?({:data, _data, end?}), do: end?
  defp final?({:closed, _reason, _sent?}), do: true
  defp final?({:moved, _request}), do: true
  defp final?({:again, _request}), do: true
  defp final?(_event), do: false

  defp memory do
    Enum.each(Process.list(), &:erlang.garbage_collect/1)
    :erlang.memory(:total)
  end

  defp now, do: System.monotonic_time(:millisecond)
end
