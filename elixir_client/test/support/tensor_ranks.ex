defmodule RankBridge.Test.TensorRanks do
  @moduledoc "Ranks within this VM, as many as a test likes, that hold nothing: a ref's id is the tensor that was put."

  alias RankBridge.Proto.V1

  defstruct [:rank, :size, :answer, transport: __MODULE__]

  @doc "Options of a gang of so many of them."
  @spec gang(pos_integer()) :: keyword()
  def gang(size) do
    targets = for rank <- 0..(size - 1), do: "#{rank}/#{size}"
    [endpoints: targets, transport: __MODULE__, form: false]
  end

  # --- the transport ---

  @doc false
  def connect(target, _opts) do
    [rank, size] = target |> String.split("/") |> Enum.map(&String.to_integer/1)
    {:ok, %__MODULE__{rank: rank, size: size}}
  end

  @doc false
  def close(_channel), do: :ok

  @doc false
  def start_unary(channel, path, _request, _opts) do
    %module{} = answer = answer(Path.basename(path), channel)
    %{channel | answer: module.encode(answer)}
  end

  @doc false
  def await(%__MODULE__{answer: answer}), do: {:ok, answer}

  defp answer("DescribeRank", channel) do
    state = :GENERATION_STATE_FORMED

    %V1.DescribeRankResponse{
      rank: channel.rank,
      world_size: channel.size,
      generation_state: state
    }
  end

  defp answer("OpenSession", _channel), do: %V1.OpenSessionResponse{outcome: {:session_id, "s"}}
  defp answer("CloseSession", _channel), do: %V1.CloseSessionResponse{outcome: {:released, 0}}

  @doc false
  def client_stream(channel, _path, messages, _opts) do
    [{:header, header} | chunks] =
      for message <- messages,
          do: V1.PutTensorRequest.decode(IO.iodata_to_binary(message)).part

    data = IO.iodata_to_binary(for {:chunk, chunk} <- chunks, do: chunk)

    ref = %V1.Ref{id: Base.encode16(data), rank: channel.rank, tensor: header.tensor}

    {:ok, V1.PutTensorResponse.encode(%V1.PutTensorResponse{outcome: {:ref, ref}})}
  end

  @doc false
  def server_stream(_channel, _path, request, acc, fun, _opts) do
    %{ref_id: id} = V1.GetTensorRequest.decode(IO.iodata_to_binary(request))
    spec = %V1.TensorSpec{dtype: :DTYPE_FLOAT32, shape: [1]}
    parts = [tensor: spec, chunk: Base.decode16!(id)]

    acc =
      for part <- parts, reduce: acc do
        acc ->
          {:cont, acc} = fun.(V1.GetTensorResponse.encode(%V1.GetTensorResponse{part: part}), acc)
          acc
      end

    {:ok, acc}
  end
end
