defmodule RankBridge.TokensTest do
  @moduledoc "Who may call real ranks over TCP: the tokens of a gang, and where they come from."

  # The environment is everybody's.
  use ExUnit.Case, async: false

  alias RankBridge.{Error, Gang, JSON, Tensor, Token, Transport}
  alias RankBridge.Test.{Certificates, LiveRanks, OsProcess}
  alias RankBridge.Transport.HTTP2.HPACK

  @variable "RANKBRIDGE_TOKEN_FILE"

  setup_all do
    ranks = LiveRanks.start(2, "gloo")
    on_exit(fn -> LiveRanks.stop(ranks) end)
    {:ok, description} = ranks.file |> File.read!() |> JSON.decode()
    %{ranks: ranks, description: description}
  end

  setup %{ranks: ranks} do
    Process.flag(:trap_exit, true)
    on_exit(fn -> System.delete_env(@variable) end)
    %{targets: Enum.map(LiveRanks.by_tcp(ranks)[:endpoints], &hd/1)}
  end

  # The gang as it is reached by TCP alone.
  defp by_tcp(description) do
    update_in(description["ranks"], fn ranks ->
      for rank <- ranks,
          do: Map.update!(rank, "endpoints", &Enum.reject(&1, fn it -> unix?(it) end))
    end)
  end

  defp encoded(value), do: value |> RankBridge.Test.JSON.encode() |> IO.iodata_to_binary()

  defp unix?(target), do: String.starts_with?(target, "unix:")

  defp sums(gang) do
    sums = RankBridge.all_reduce!(gang, RankBridge.put!(gang, [[1.0], [2.0]]))
    gang |> RankBridge.get!(sums) |> Enum.map(&Tensor.to_list/1)
  end

  defp refused(opts) do
    {:ok, gang} = Gang.start_link(opts)

    assert_receive {:EXIT, ^gang,
                    {:shutdown, %Error{reason: :not_allowed, indefinite: false} = error}},
                   10_000

    error.message
  end

  test "nobody gets in without a token, or with another gang's", context do
    assert refused(endpoints: context.targets) =~ ~r/\Aunauthenticated: no token.*#{@variable}/

    for other <- ["", String.duplicate("x", 43), fn -> String.duplicate("y", 43) end],
        do: assert(refused(endpoints: context.targets, token: other) =~ "unauthenticated: ")

    # Where nothing but the transport is used, too.
    {:ok, channel} = Transport.connect(hd(context.targets))

    assert {:error, %Transport.Status{code: :unauthenticated}} =
             Transport.unary(channel, "/rankbridge.v1.RankService/DescribeRank", "")

    Transport.close(channel)
  end

  test "whoever drives or owns a gang does what its role allows", context do
    %{targets: targets, description: %{"tokens" => tokens}} = context

    for {role, form} <- [{"drive", :refused}, {"own", :formed}] do
      gang = start_supervised!({Gang, endpoints: targets, token: tokens[role]}, id: role)
      assert sums(gang) == [[3.0], [3.0]]
      assert sums_by_ranks(gang) == [[3.0], [3.0]]

      case form do
        :refused ->
          assert {:error, %Error{reason: :not_allowed, message: why}} = RankBridge.form(gang)
          assert why =~ "permission_denied: the caller may drive; the call needs own"

        :formed ->
          assert {:ok, %{generation: _}} = RankBridge.form(gang)
      end

      stop_supervised!(role)
    end
  end

  defp sums_by_ranks(gang) do
    refs = RankBridge.put!(gang, [[1.0], [2.0]])

    gang
    |> RankBridge.get!(RankBridge.all_reduce!(gang, refs, calls: :ranks))
    |> Enum.map(&Tensor.to_list/1)
  end

  test "whoever observes sees the ranks and changes nothing", context do
    %{targets: targets, description: %{"tokens" => %{"observe" => token}}} = context
    # A session is a controller's.
    assert refused(endpoints: targets, token: token) =~ "permission_denied"

    gang = start_supervised!({Gang, endpoints: targets, token: token, session: false})
    [generation] = for(status <- RankBridge.status!(gang), do: status.generation) |> Enum.uniq()

    for {call, name} <- [
          {fn -> RankBridge.put(gang, [[1.0], [2.0]]) end, "put"},
          {fn -> RankBridge.barrier(gang) end, "barrier"},
          {fn -> RankBridge.barrier(gang, calls: :ranks) end, "barrier by ranks"},
          {fn -> RankBridge.form(gang) end, "form"}
        ] do
      assert {^name, {:error, %Error{reason: :not_allowed, indefinite: false}}} = {name, call.()}
    end

    assert for(status <- RankBridge.status!(gang), do: status.generation) ==
             [generation, generation]
  end

  @tag :tmp_dir
  test "the endpoints file has the token, the environment names another's", context do
    %{tmp_dir: directory, targets: targets, description: description} = context
    file = Path.join(directory, "endpoints.json")
    File.write!(file, encoded(by_tcp(description)))
    start_supervised!({Gang, name: __MODULE__.ByFile, endpoints_file: file}, id: :file)
    assert sums(__MODULE__.ByFile) == [[3.0], [3.0]]

    for {name, text} <- [
          {"json", encoded(description["tokens"])},
          {"alone", description["tokens"]["own"] <> "\n"}
        ] do
      path = Path.join(directory, name)
      File.write!(path, text)
      System.put_env(@variable, path)
      gang = start_supervised!({Gang, endpoints: targets}, id: name)
      assert sums(gang) == [[3.0], [3.0]]
      # The gang's own goes first, and what the program says before both.
      gang = start_supervised!({Gang, endpoints_file: file}, id: {:both, name})
      assert sums(gang) == [[3.0], [3.0]]
      assert refused(endpoints_file: file, token: "another") =~ "unauthenticated"
    end

    for {text, why} <- [
          {nil, "no such file"},
          {"", "no token"},
          {"two words", "no token"},
          {"{}", "no token"}
        ] do
      path = Path.join(directory, "wrong")
      File.rm(path)
      if text, do: File.write!(path, text)
      System.put_env(@variable, path)

      assert {:error, %Error{reason: :invalid_argument, message: message}} =
               Gang.start_link(endpoints: targets)

      assert message =~ why and message =~ path
    end

    assert {:error, %Error{reason: :invalid_argument, message: ":token is wrong"}} =
             Gang.start_link(size: 2, token: :own)
  end

  test "a gang that starts its ranks has their token, over TCP as well" do
    files = Certificates.make()

    gang =
      start_supervised!(
        {Gang,
         size: 2,
         backend: :fake,
         command: OsProcess.rankbridge(),
         arguments: ["--tls-cert", files.server_cert, "--tls-key", files.server_key],
         tls: [cacertfile: files.server_cert, server_name: "localhost", verify: :verify_none]}
      )

    assert RankBridge.await_ready(gang, 60_000) == :ok
    # With TLS they are reached by TCP.
    {:ok, view} = Gang.View.fetch(gang)

    refute Enum.any?(Gang.Channels.rows(view.channels), fn {_channel, target} -> unix?(target) end)

    assert sums(gang) == [[3.0], [3.0]]
  end

  test "no process shows the token: not its state, nor the report of its crash", context do
    %{targets: targets, description: %{"tokens" => %{"own" => token}}} = context
    gang = joined(targets, token)
    {:ok, view} = Gang.View.fetch(gang)

    shown = [
      inspect(view, all()),
      inspect(channels(gang), all()),
      inspect(Token.new(token), all())
    ]

    states = for pid <- processes(gang), do: inspect(:sys.get_status(pid), all())
    raw = for pid <- processes(gang), do: to_string(:io_lib.format("~p", [:sys.get_status(pid)]))
    Enum.each(shown ++ states ++ raw, &refute_shown(&1, token))

    hear_log()

    # Each of a gang of its own: the end of one may end others, which then say nothing of their state.
    for place <- 0..(length(processes(gang)) - 1) do
      pid = targets |> joined(token) |> processes() |> Enum.at(place)
      monitor = Process.monitor(pid)
      GenServer.cast(pid, :nothing_that_it_knows)
      assert_receive {:DOWN, ^monitor, :process, ^pid, _why}, 10_000
      # A process logs before it is gone.
      texts = logged(pid)
      assert Enum.any?(texts, &(&1 =~ "handle_cast"))
      Enum.each(texts, &refute_shown(&1, token))
    end
  end

  defp joined(targets, token) do
    {:ok, gang} = Gang.start_link(endpoints: targets, token: token)
    assert RankBridge.await_ready(gang, 60_000) == :ok
    gang
  end

  defp channels(gang) do
    {:ok, view} = Gang.View.fetch(gang)
    for {channel, _target} <- Gang.Channels.rows(view.channels), do: channel
  end

  defp processes(gang) do
    pids = for channel <- channels(gang), do: channel.pid
    [gang | pids] ++ for(pid <- pids, do: :sys.get_state(pid).current)
  end

  defp logged(pid) do
    receive do
      {:logged, ^pid, text} -> [text | logged(pid)]
    after
      0 -> []
    end
  end

  # What is logged comes here, as OTP prints it, and is not printed.
  defp hear_log do
    levels = for %{id: id, level: level} <- :logger.get_handler_config(), do: {id, level}
    for {id, _level} <- levels, do: :ok = :logger.set_handler_config(id, :level, :none)
    :ok = :logger.add_handler(__MODULE__, __MODULE__, %{config: %{to: self()}})

    on_exit(fn ->
      :ok = :logger.remove_handler(__MODULE__)
      for {id, level} <- levels, do: :ok = :logger.set_handler_config(id, :level, level)
    end)
  end

  @doc false
  def log(event, %{config: %{to: test}}) do
    text = :logger_formatter.format(event, %{single_line: false})
    send(test, {:logged, self(), to_string(text)})
  end

  defp all, do: [limit: :infinity, printable_limit: :infinity, structs: true]

  # As it is, and as it goes over the wire.
  defp refute_shown(text, token) do
    encoded = HPACK.encode([{"authorization", "Bearer " <> token}], huffman: true)
    <<_name_and_length::binary-size(4), value::binary>> = encoded
    refute text =~ token
    refute text =~ value |> :binary.bin_to_list() |> Enum.join(", ")
  end
end
