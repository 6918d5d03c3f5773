defmodule RankBridge.Test.Hostile.Cases.HPACK do
  @moduledoc "Header blocks that no encoder would make (RFC 7541)."

  import RankBridge.Test.Hostile.{Bytes, Case}

  alias RankBridge.Test.Hostile.Case

  @content_type <<0x0F, 16>> <> <<16>> <> "application/grpc"
  @good <<0x88>> <> @content_type

  @doc "The cases."
  @spec all() :: [Case.t()]
  def all, do: wrong() ++ right() ++ limits()

  defp wrong do
    for {name, section, block} <- [
          {"index 0", "6.1", <<0x80>>},
          {"an index beyond both tables", "2.3.3", <<0x88, 0xBE>>},
          {"a large index", "2.3.3", <<0xFF, 0x80, 0x80, 0x01>>},
          {"an integer that overflows", "5.1", <<0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F>>},
          {"an integer of zeros without end", "5.1",
           <<0xFF, :binary.copy(<<0x80>>, 100)::binary>>},
          {"an integer that is cut off", "5.1", <<0x88, 0xFF>>},
          {"a string that is cut off", "5.2", <<0x88, 0x00, 5, "a">>},
          {"a string's length that is cut off", "5.2", <<0x88, 0x00, 0x7F>>},
          {"a string of 2^28 bytes", "5.2", <<0x88, 0x00, 0x7F, 0x81, 0xFF, 0xFF, 0x7F>>},
          {"a name without a value", "6.2.2", <<0x88, 0x00, 1, "a">>},
          {"a literal without a name", "6.2.1", <<0x88, 0x40>>},
          {"a name's index beyond both tables", "6.2.1", <<0x88, 0x7F, 0x00, 1, "a">>},
          {"a Huffman code with EOS", "5.2", <<0x88, 0x00, 0x84, 0xFF, 0xFF, 0xFF, 0xFF, 0>>},
          {"Huffman padding of a byte", "5.2", <<0x88, 0x00, 0x82, 0x1F, 0xFF, 0>>},
          {"Huffman padding of zeros", "5.2", <<0x88, 0x00, 0x81, 0x18, 0>>},
          {"a table above the limit", "6.3", <<0x3F, 0xE2, 0x1F, 0x88>>},
          {"a change of the table after a field", "4.2", <<0x88, 0x20>>},
          {"a change of the table after fields, at the end", "4.2", @good <> <<0x3F, 0xE1, 0x1F>>}
        ] do
      connection(name, "7541 " <> section, :compression_error, [headers(block)])
    end ++
      [
        connection("a field of a table that was emptied", "7541 4.3", :compression_error, [
          headers(@good <> <<0x40, 1, "a", 1, "b">>),
          headers(<<0x20, 0xBE>>, [:end_stream])
        ]),
        connection("a field that was too large for the table", "7541 4.4", :compression_error, [
          headers(
            @good <>
              <<0x40, 1, "a", 0x7F, 0xA1, 0x1F>> <> :binary.copy("v", 4_128) <> <<0xBE>>
          )
        ]),
        connection("a name of a field that was evicted", "7541 2.3.3", :compression_error, [
          headers(<<0x3F, 0x09, 0x88, 0x40, 1, "a", 1, "b", 0x40, 1, "c", 1, "d", 0x7F, 0, 0>>)
        ])
      ]
  end

  defp right do
    [
      ignored("a literal that is never indexed", "7541 6.2.3", [
        headers(@good <> <<0x10, 1, "a", 1, "b">>),
        rest()
      ]),
      ignored(
        "fields of the dynamic table",
        "7541 2.3",
        [
          headers(<<0x88, 0x5F>> <> string("application/grpc") <> <<0x40, 1, "a", 1, "b">>),
          message("fine"),
          headers(<<0xBE, 0x40>> <> string("grpc-status") <> <<1, "0", 0xBE, 0xC0>>, [:end_stream])
        ],
        call: {:ok, "fine"}
      ),
      ignored("two changes of the table", "7541 4.2", [
        headers(<<0x20, 0x3F, 0xE1, 0x1F>> <> @good),
        rest()
      ]),
      ignored("a table of 0 bytes, to which fields are added", "7541 4.4", [
        headers(<<0x20>> <> @good <> <<0x40, 1, "a", 1, "b">>),
        rest()
      ]),
      ignored("a table that is emptied between blocks", "7541 4.3", [
        headers(@good <> <<0x40, 1, "a", 1, "b">>),
        message("fine"),
        headers(<<0x20, 0x3F, 0xE1, 0x1F>> <> block([{"grpc-status", "0"}]), [:end_stream])
      ]),
      ignored("an empty value, Huffman-coded", "7541 5.2", [
        headers(@good <> <<0x00, 1, "a", 0x80>>),
        rest()
      ]),
      stream("an empty name", "9113 8.2.1", :protocol_error, [
        headers(@good <> <<0x00, 0, 1, "b">>)
      ]),
      stream("an empty header block", "9113 8.3.2", :protocol_error, [headers("")]),
      stream("a header block that only changes the table", "9113 8.3.2", :protocol_error, [
        headers(<<0x20>>)
      ])
    ]
  end

  defp limits do
    [
      stream(
        "a header list above the limit",
        "9113 10.5.1",
        :enhance_your_calm,
        [
          headers(@good <> <<0x00, 1, "a", 0x7F, 0xAD, 0x01>> <> :binary.copy("v", 300))
        ],
        opts: [max_header_list: 300]
      ),
      stream("a small block that stands for a large list", "9113 10.5.1", :enhance_your_calm, [
        headers(@good <> <<0x40, 1, "a", 0x7F, 0xA1, 0x1E>> <> :binary.copy("v", 4_000)),
        headers(:binary.copy(<<0xBE>>, 4_000), [:end_stream])
      ]),
      stream("100,000 fields of one byte each", "9113 10.5.1", :enhance_your_calm, [
        frame(:headers, [], 1, :binary.copy(<<0x88>>, 16_384)),
        :binary.copy(frame(:continuation, [], 1, :binary.copy(<<0x88>>, 16_384)), 5),
        frame(:continuation, [:end_headers], 1)
      ])
    ]
  end
end
