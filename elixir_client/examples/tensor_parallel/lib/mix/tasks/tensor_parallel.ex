defmodule Mix.Tasks.TensorParallel do
  @shortdoc "Serves a model that is spread over four ranks, from Elixir and from Node, while a rank is lost"

  @moduledoc """
  Asks for many texts at once, kills a rank in the middle, and checks every answer.

      mix tensor_parallel --requests 100 --length 4 --rank 2

  With `--node FOLDER`, a copy of `node/` in which `npm ci` has been, a program in Node asks as many, on the same gang and at the same
  time. The program `rankbridge` is the one in the environment's `RANKBRIDGE_COMMAND`, or in the path.
  """

  use Mix.Task

  @requirements ["app.start"]
  @defaults [requests: 100, length: 4, rank: 2]
  @switches [requests: :integer, length: :integer, rank: :integer, node: :string]
  @proto Path.expand("../../../../../../proto", __DIR__)

  @impl true
  def run(arguments) do
    {given, []} = OptionParser.parse!(arguments, strict: @switches)
    opts = Keyword.merge(@defaults, given)
    folder = Path.join(System.tmp_dir!(), "tensor_parallel-#{System.pid()}")
    File.mkdir_p!(folder)

    try do
      serve(opts, Path.join(folder, "endpoints.json"))
    after
      File.rm_rf!(folder)
    end
  end

  defp serve(opts, endpoints) do
    child = TensorParallel.gang(arguments: ["--endpoints-file", endpoints])
    {:ok, supervisor} = Supervisor.start_link([child], strategy: :one_for_one)
    gang = TensorParallel.Gang
    :ok = RankBridge.await_ready(gang, 120_000)
    say("the gang is ready: each rank has a quarter of the weights")
    node = opts[:node] && Task.async(fn -> from_node(opts, endpoints) end)
    from_elixir(gang, opts)
    if node, do: Task.await(node, :infinity)
    Supervisor.stop(supervisor)
  end

  defp from_elixir(gang, opts) do
    began = now()
    answered = :counters.new(1, [])

    # The world, which kills a rank in the middle.
    on_answer = fn _text ->
      :counters.add(answered, 1, 1)

      if :counters.get(answered, 1) == div(opts[:requests], 3) do
        pid = TensorParallel.kill(gang, opts[:rank])
        say("rank #{opts[:rank]}, process #{pid}, is killed")
      end
    end

    texts = TensorParallel.texts(opts[:requests])
    served = TensorParallel.serve(gang, texts, opts[:length], on_answer)
    took = now() - began

    say(
      "Elixir: #{map_size(served.answers)} answers in #{took} ms, #{length(served.lost)} cut off and asked again"
    )

    with [{text, error} | _] <- served.lost, do: say(~s(  "#{text}": #{Exception.message(error)}))

    case Enum.reject(served.answers, fn {text, each} ->
           TensorParallel.right?(gang, text, opts[:length], each)
         end) do
      [] -> say("Elixir: all are what one rank with all weights answers")
      wrong -> Mix.raise("#{length(wrong)} answers are wrong")
    end
  end

  defp from_node(opts, endpoints) do
    arguments = ["ask.mjs", @proto, endpoints, "#{opts[:requests]}", "#{opts[:length]}"]

    {_output, 0} = System.cmd("node", arguments, cd: opts[:node], into: IO.stream())
  end

  defp now, do: System.monotonic_time(:millisecond)
  defp say(line), do: Mix.shell().info(line)
end
