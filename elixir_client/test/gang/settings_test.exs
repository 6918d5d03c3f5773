defmodule RankBridge.Gang.SettingsTest do
  use ExUnit.Case, async: true

  alias RankBridge.{Error, Gang}
  alias RankBridge.Gang.{Restarts, Settings}

  @started [size: 2]
  @there [endpoints: ["a:1"]]

  defp policy(opts) do
    {:ok, settings} = Settings.read(opts)
    settings.on_rank_lost
  end

  test "each option that is wrong is refused by its name, with what was expected and what was given" do
    wrong = [
      {@started, name: "MyGang"},
      {@started, name: {:via, "Registry", :a}},
      {@started, name: {:local, :a}},
      {[], size: 0},
      {[], size: 2.0},
      {@started, backend: :smoke},
      {@started, command: :rankbridge},
      {@started, arguments: "--max-bytes 4G"},
      {@started, arguments: [:a]},
      {@started, load: :app},
      {@started, load: ["app.py", ""]},
      {@started, start_timeout: 0},
      {@there, session: :mine},
      {@there, lease: -1},
      {@there, lease: 1.5},
      {@there, form: :maybe},
      {@there, groups: :all},
      {@there, groups: [{"second", 1}]},
      {@there, groups: [{:second, [1]}]},
      {@there, groups: [{"second", [-1]}]},
      {@there, timeout: 0},
      {@there, timeout: :infinity},
      {@there, tls: true},
      {@there, keepalive: 0},
      {@there, keepalive: nil},
      {@there, transport: nil},
      {@there, transport: "HTTP2"},
      {@there, unready: :raise},
      {@there, on_rank_lost: :ignore},
      {@there, max_restarts: -1},
      {@there, max_seconds: 0},
      {@there, recovery_timeout: 0},
      {@there, handle_rank_lost: fn _gang -> :ok end},
      {@there, handle_rank_lost: {__MODULE__, "f", []}}
    ]

    for {right, [{name, value}] = opts} <- wrong do
      assert {:error, %Error{reason: :invalid_argument, operation: "start_link"} = error} =
               Settings.read(right ++ opts)

      assert {name, error.message} == {name, "#{inspect(name)} is wrong"}
      assert error.expected != ""
      got = if is_binary(value), do: value, else: inspect(value, limit: 3)
      assert error.got == if(name == :tls, do: "something else", else: got)
    end
  end

  test "where the ranks come from is said once, and nothing of another place" do
    for opts <- [
          [],
          [size: 2, endpoints: ["a:1"]],
          [size: 2, endpoints_file: "x.json"],
          [endpoints: ["a:1"], endpoints_file: "x.json"],
          @there ++ [backend: :gloo],
          @there ++ [command: "rankbridge"],
          @there ++ [arguments: []]
        ] do
      assert {opts, {:error, %Error{reason: :invalid_argument, operation: "start_link"}}} =
               {opts, Settings.read(opts)}

      # The same is said by what starts a gang.
      assert {:error, %Error{reason: :invalid_argument}} = Gang.start_link(opts)
    end
  end

  test "what is done about losses depends on who starts the ranks, and on the backend" do
    assert policy(@there) == :leave
    assert policy(size: 2) == :replace
    assert policy(size: 2, backend: :gloo) == :replace
    assert policy(size: 2, backend: :nccl) == :replace
    assert policy(size: 2, backend: :mpi) == :shrink
    assert policy(size: 2, backend: :fake) == :stop

    for policy <- [:replace, :shrink, :stop, :leave],
        opts <- [@started, @there],
        do: assert(policy(opts ++ [on_rank_lost: policy]) == policy)
  end

  test "what is not said has a default" do
    assert {:ok, settings} = Settings.read(size: 3)
    assert %{name: nil, size: 3, backend: :gloo, command: nil, endpoints: nil} = settings
    assert %{session: true, lease: 30_000, timeout: 30_000, unready: :wait} = settings
    assert %{keepalive: 300_000, tls: nil} = settings
    assert %{start_timeout: 60_000, recovery_timeout: 60_000} = settings
    assert settings.restarts == Restarts.new(3, 5)
    assert Settings.starts_ranks?(settings)

    assert {:ok, settings} = Settings.read(@there ++ [lease: nil, max_restarts: 0])
    assert %{endpoints: [["a:1"]], lease: 0} = settings
    assert settings.restarts == Restarts.new(0, 5)
    refute Settings.starts_ranks?(settings)
  end

  test "both kinds of callbacks are taken" do
    for callback <- [fn _gang, _lost -> :ok end, {__MODULE__, :reload, [1]}, nil] do
      assert {:ok, %{handle_rank_lost: ^callback}} =
               Settings.read(size: 1, handle_rank_lost: callback)
    end
  end
end
