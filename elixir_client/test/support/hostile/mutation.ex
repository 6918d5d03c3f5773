defmodule RankBridge.Test.Hostile.Mutation do
  @moduledoc """
  Conversations of servers that went well, and what a seed makes of them: bits are flipped, frames cut, repeated, put elsewhere,
  taken from other conversations. The same seed makes the same bytes.
  """

  import RankBridge.Test.Hostile.Bytes

  @type conversation :: [binary()]

  @doc "Good conversations in answer to stream 1, as frames."
  @spec conversations() :: [conversation()]
  def conversations do
    gzip = framed(:zlib.gzip("fine"), 1)
    <<first, block::binary>> = block(good_headers([{"x", String.duplicate("y", 100)}]))

    [
      [headers(), message("fine"), trailers()],
      [headers([{":status", "100"}]), headers(), message("fi"), message("ne"), trailers()],
      [headers(good_headers([{"grpc-encoding", "gzip"}])), frame(:data, [], 1, gzip), trailers()],
      [
        frame(:headers, [], 1, <<first>>),
        frame(:continuation, [], 1, ""),
        frame(:continuation, [:end_headers], 1, block),
        frame(:data, [:padded], 1, [<<20>>, framed("fine"), <<0::160>>]),
        trailers([{"grpc-status", "5"}, {"grpc-message", "%C3%A9"}, {"a-bin", "AAEC"}])
      ],
      [headers(good_headers([{"grpc-status", "9"}]), [:end_stream])],
      [
        frame(:settings, [], 0, <<3::16, 100::32, 4::16, 1_000_000::32>>),
        frame(:window_update, [], 0, <<100_000::32>>),
        frame(:ping, [], 0, "12345678"),
        headers(
          <<0x88, 0x40, string("content-type")::binary, string("application/grpc")::binary>>
        ),
        frame(:window_update, [], 1, <<1_000::32>>),
        for(<<byte <- framed("fine")>>, do: frame(:data, [], 1, <<byte>>)),
        headers(<<0x00, string("grpc-status")::binary, string("0")::binary, 0xBE>>, [:end_stream])
      ]
      |> List.flatten(),
      [
        frame(:goaway, [], 0, <<2_147_483_647::32, 0::32, "bye">>),
        headers(),
        frame(:goaway, [], 0, <<1::32, 0::32>>),
        message("fine"),
        trailers()
      ],
      [headers(), frame(:rst_stream, [], 1, <<8::32>>)]
    ]
  end

  @doc "Sets the generator of this process to a seed."
  @spec seed(integer()) :: :ok
  def seed(seed) do
    _state = :rand.seed(:exsss, seed)
    :ok
  end

  @doc "A conversation with some things wrong, by the generator of this process."
  @spec mutated() :: conversation()
  def mutated do
    frames = Enum.random(conversations())
    Enum.reduce(1..Enum.random([1, 1, 1, 2, 3, 5]), frames, fn _n, frames -> mutate(frames) end)
  end

  defp mutate([]), do: [frame(:rand.uniform(12) - 1, :rand.uniform(256) - 1, 1, "")]

  defp mutate(frames) do
    at = :rand.uniform(length(frames)) - 1
    {before, [frame | behind]} = Enum.split(frames, at)
    before ++ change(:rand.uniform(11), frame, behind)
  end

  defp change(1, frame, behind), do: [flip(frame) | behind]
  defp change(2, frame, behind), do: [cut(frame) | behind]
  defp change(3, frame, _behind), do: [cut(frame)]
  defp change(4, frame, behind), do: [frame, frame | behind]
  defp change(5, _frame, behind), do: behind
  defp change(6, frame, behind), do: Enum.shuffle([frame | behind])

  defp change(7, frame, behind),
    do: [frame, Enum.random(Enum.random(conversations())) | behind]

  defp change(8, frame, behind), do: [put(frame, 3, <<:rand.uniform(13) - 1>>) | behind]
  defp change(9, frame, behind), do: [put(frame, 4, <<:rand.uniform(256) - 1>>) | behind]

  defp change(10, frame, behind),
    do: [put(frame, 5, <<Enum.random([0, 1, 2, 3, 99, 4_294_967_295])::32>>) | behind]

  defp change(11, frame, behind), do: [frame, :rand.bytes(:rand.uniform(40)) | behind]

  defp flip(""), do: ""

  defp flip(frame) do
    at = :rand.uniform(byte_size(frame)) - 1
    <<head::binary-size(at), byte, rest::binary>> = frame
    <<head::binary, Bitwise.bxor(byte, Bitwise.bsl(1, :rand.uniform(8) - 1)), rest::binary>>
  end

  defp cut(""), do: ""
  defp cut(frame), do: binary_part(frame, 0, :rand.uniform(byte_size(frame)) - 1)

  defp put(frame, at, bytes) when byte_size(frame) < at + byte_size(bytes), do: frame

  defp put(frame, at, bytes) do
    size = byte_size(bytes)
    <<head::binary-size(at), _::binary-size(size), rest::binary>> = frame
    head <> bytes <> rest
  end
end
