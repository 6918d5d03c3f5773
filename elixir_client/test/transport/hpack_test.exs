defmodule RankBridge.Transport.HPACKTest do
  use ExUnit.Case, async: true

  alias RankBridge.Transport.HTTP2.{HPACK, HPACKTable, Huffman}

  @room 65_536

  defp hex(text), do: text |> String.replace([" ", "\n"], "") |> Base.decode16!(case: :lower)

  defp decode_all(blocks, limit \\ 4096) do
    Enum.map_reduce(blocks, HPACKTable.new(limit), fn block, table ->
      {:ok, headers, table} = HPACK.decode(hex(block), table, @room)
      {headers, table}
    end)
  end

  @requests [
    [{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "www.example.com"}],
    [
      {":method", "GET"},
      {":scheme", "http"},
      {":path", "/"},
      {":authority", "www.example.com"},
      {"cache-control", "no-cache"}
    ],
    [
      {":method", "GET"},
      {":scheme", "https"},
      {":path", "/index.html"},
      {":authority", "www.example.com"},
      {"custom-key", "custom-value"}
    ]
  ]

  @cookie "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"
  @responses [
    [
      {":status", "302"},
      {"cache-control", "private"},
      {"date", "Mon, 21 Oct 2013 20:13:21 GMT"},
      {"location", "https://www.example.com"}
    ],
    [
      {":status", "307"},
      {"cache-control", "private"},
      {"date", "Mon, 21 Oct 2013 20:13:21 GMT"},
      {"location", "https://www.example.com"}
    ],
    [
      {":status", "200"},
      {"cache-control", "private"},
      {"date", "Mon, 21 Oct 2013 20:13:22 GMT"},
      {"location", "https://www.example.com"},
      {"content-encoding", "gzip"},
      {"set-cookie", @cookie}
    ]
  ]

  describe "the examples of RFC 7541, appendix C" do
    test "C.2: one field of each representation" do
      for {block, headers, size} <- [
            {"400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
             [{"custom-key", "custom-header"}], 55},
            {"040c 2f73 616d 706c 652f 7061 7468", [{":path", "/sample/path"}], 0},
            {"1008 7061 7373 776f 7264 0673 6563 7265 74", [{"password", "secret"}], 0},
            {"82", [{":method", "GET"}], 0}
          ] do
        assert {[^headers], %{size: ^size}} = decode_all([block])
      end
    end

    test "C.3: requests without Huffman code share a dynamic table" do
      blocks = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65"
      ]

      assert {@requests, %{size: 164}} = decode_all(blocks)
    end

    test "C.4: requests with Huffman code" do
      blocks = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf"
      ]

      assert {@requests, %{size: 164}} = decode_all(blocks)
    end

    test "C.5: responses without Huffman code evict from a table of 256 bytes" do
      blocks = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 " <>
          "2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 " <>
          "6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d " <>
          "54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 " <>
          "5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31"
      ]

      assert {@responses, %{size: 215}} = decode_all(blocks, 256)
    end

    test "C.6: responses with Huffman code evict from a table of 256 bytes" do
      blocks = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 " <>
          "2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab " <>
          "77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f " <>
          "9587 3160 65c0 03ed 4ee5 b106 3d50 07"
      ]

      assert {@responses, %{size: 215}} = decode_all(blocks, 256)
    end

    test "C.1: an integer that spans bytes" do
      # A size update of 1337, which the limit allows.
      assert {:ok, [], %{max_size: 1337}} = HPACK.decode(hex("3f9a0a"), HPACKTable.new(), @room)
    end
  end

  describe "Huffman" do
    test "every byte survives, alone and in company" do
      for byte <- 0..255, text = <<byte>> do
        assert {:ok, ^text} = Huffman.decode(Huffman.encode(text))
      end

      all = :binary.list_to_bin(Enum.to_list(0..255))
      assert {:ok, ^all} = Huffman.decode(Huffman.encode(all))
    end

    test "padding must be fewer than 8 ones" do
      assert {:ok, "0"} = Huffman.decode(<<0b00000_111>>)
      assert :error = Huffman.decode(<<0b00000_110>>)
      assert :error = Huffman.decode(<<0b00000_111, 0xFF>>)
    end

    test "EOS within a string is an error" do
      assert :error = Huffman.decode(<<0xFFFFFFFC::32>>)
      assert :error = Huffman.decode(<<0xFFFFFFFF::32>>)
    end
  end

  describe "encoding" do
    test "random header lists survive, with and without Huffman code" do
      seed = :rand.seed(:exsss, System.unique_integer([:positive]))
      message = "seed: #{inspect(:rand.export_seed_s(seed))}"

      for _ <- 1..300, huffman? <- [true, false] do
        headers =
          for _ <- 1..:rand.uniform(12), do: {random_name(), :rand.bytes(:rand.uniform(400) - 1)}

        block = HPACK.encode(headers, huffman: huffman?)

        assert {:ok, ^headers, %{size: 0}} = HPACK.decode(block, HPACKTable.new(), 1_000_000),
               message
      end
    end

    test "secrets are marked as never to be indexed" do
      assert <<0b0001::4, _::bitstring>> = HPACK.encode([{"authorization", "Bearer x"}])
      assert <<0b0000::4, _::bitstring>> = HPACK.encode([{"x-other", "y"}])
    end

    test "the first block announces an empty table" do
      assert {:ok, [], %{max_size: 0}} =
               HPACK.decode(HPACK.no_dynamic_table(), HPACKTable.new(), @room)
    end
  end

  describe "decoding what should not be" do
    test "cut or senseless blocks are compression errors, and never crash" do
      for block <- [
            # index 0; an index beyond the tables; a cut string; a cut integer; no value
            <<0x80>>,
            <<0xBE>>,
            <<0x40, 5, "abc">>,
            <<0xFF, 0x80>>,
            <<0x40, 1, "a">>,
            # an integer without end; a size update above the limit; a size update after a field
            <<0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF>>,
            <<0x3F, 0xE2, 0x1F>>,
            <<0x82, 0x20>>,
            # Huffman code with bad padding
            <<0x40, 0x81, 0x00, 0x00>>
          ] do
        assert {:error, :compression} = HPACK.decode(block, HPACKTable.new(), @room)
      end
    end

    test "random bytes give headers or an error" do
      seed = :rand.seed(:exsss, System.unique_integer([:positive]))

      for _ <- 1..3_000 do
        result = HPACK.decode(:rand.bytes(:rand.uniform(60)), HPACKTable.new(), @room)

        assert elem(result, 0) in [:ok, :too_large, :error],
               "seed: #{inspect(:rand.export_seed_s(seed))}"
      end
    end

    test "a small block that stands for a large list is refused" do
      {:ok, _, table} =
        HPACK.decode(
          <<0x40, 1, "a", 0x7F, 0xA1, 0x1E, :binary.copy("v", 4000)::binary>>,
          HPACKTable.new(),
          @room
        )

      assert HPACK.decode(:binary.copy(<<0xBE>>, 1000), table, @room) == {:too_large, table}
      # What the block adds to the table is in it all the same.
      block = :binary.copy(<<0xBE>>, 1000) <> <<0x40, 1, "b", 1, "c">>
      assert {:too_large, table} = HPACK.decode(block, table, @room)
      assert {:ok, [{"b", "c"}], _table} = HPACK.decode(<<0xBE>>, table, @room)
    end
  end

  defp random_name do
    known = [":path", ":status", "content-type", "x-#{:rand.uniform(1000)}", "user-agent"]
    Enum.random(known)
  end
end
