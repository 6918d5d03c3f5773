# Payloads as SnakeBridge sends them are answered by real ranks as the recording says.
for backend <- ["fake", "gloo"] do
  defmodule Module.concat(RankBridge.SnakeBridge.PayloadsTest, Macro.camelize(backend)) do
    use ExUnit.Case, async: false

    alias RankBridge.{AtOnce, Gang, JSON}
    alias RankBridge.SnakeBridge.RuntimeClient
    alias RankBridge.Test.LiveRanks

    @backend backend
    @gang Module.concat(__MODULE__, Gang)
    @moduletag timeout: 120_000

    setup do
      ranks = LiveRanks.start(2, @backend)
      on_exit(fn -> LiveRanks.stop(ranks) end)
      start_supervised!({Gang, name: @gang, endpoints_file: ranks.file, timeout: 50_000})
      before = Application.get_all_env(:rank_bridge)
      Application.put_env(:rank_bridge, :gang, @gang)
      Application.put_env(:rank_bridge, :pools, rank_0: 0, rank_1: {@gang, 1})

      on_exit(fn ->
        for key <- [:gang, :pools], do: restore(key, before[key])
      end)
    end

    defp restore(key, nil), do: Application.delete_env(:rank_bridge, key)
    defp restore(key, value), do: Application.put_env(:rank_bridge, key, value)

    test "each call has its recorded answer" do
      {:ok, steps} =
        __DIR__ |> Path.join("payloads/coordinator.json") |> File.read!() |> JSON.decode()

      assert length(steps) > 40

      Enum.reduce(steps, %{}, fn step, saved ->
        step["calls"]
        |> AtOnce.map(&play(&1, saved))
        |> Enum.zip(step["calls"])
        |> Enum.reduce(saved, fn {answer, call}, saved ->
          check(step["about"], call, answer)
          if call["save"], do: Map.put(saved, call["save"], elem(answer, 1)), else: saved
        end)
      end)

      assert {:ok, count} =
               RuntimeClient.execute(
                 "snakebridge.release_session",
                 %{"session_id" => "recorded-session"},
                 []
               )

      assert count > 5
      assert RankBridge.list!(@gang) |> Enum.map(& &1.id) == []
    end

    defp play(call, saved) do
      opts = for {name, value} <- call["opts"], do: {String.to_atom(name), option(name, value)}

      RuntimeClient.execute(
        call["tool"] || "snakebridge.call",
        filled(call["payload"], saved),
        opts
      )
    end

    defp option("pool_name", name), do: String.to_atom(name)
    defp option(_name, value), do: value

    # SnakeBridge sends back all of a ref but the names of its type.
    defp filled(%{"$saved" => name}, saved),
      do: saved |> Map.fetch!(name) |> Map.drop(["type_name", "__type_name__"])

    defp filled(map, saved) when is_map(map),
      do: Map.new(map, fn {key, value} -> {key, filled(value, saved)} end)

    defp filled(list, saved) when is_list(list), do: Enum.map(list, &filled(&1, saved))
    defp filled(other, _saved), do: other

    defp check(about, %{"error" => category}, answer) do
      assert {about, {:error, %Snakepit.Error{} = error}} = {about, answer}
      assert {about, "#{error.category}"} == {about, category}
      assert is_binary(error.message) and is_map(error.details)
    end

    defp check(about, %{"answer" => expected}, answer) do
      assert {about, {:ok, wire}} = {about, answer}
      assert {about, named(wire)} === {about, expected}
    end

    # Ids are new each time.
    defp named(%{"__type__" => "ref", "__schema__" => 1} = ref) do
      assert String.starts_with?(ref["id"], "rankbridge-")
      assert ref["session_id"] == "recorded-session"
      assert Enum.all?(["library", "python_module", "type_name"], &is_binary(ref[&1]))
      assert ref["__type_name__"] == ref["type_name"]
      %{"$ref" => ref["type_name"]}
    end

    defp named(%{"__type__" => "stream_ref", "__schema__" => 1}), do: %{"$ref" => "stream"}

    defp named(map) when is_map(map), do: Map.new(map, fn {key, value} -> {key, named(value)} end)
    defp named(list) when is_list(list), do: Enum.map(list, &named/1)
    defp named(other), do: other
  end
end
