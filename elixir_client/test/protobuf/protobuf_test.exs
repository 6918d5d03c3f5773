defmodule RankBridge.ProtobufTest do
  use ExUnit.Case, async: true

  alias RankBridge.Proto.V1
  alias RankBridge.Protobuf.{EncodeError, Wire}

  doctest RankBridge.Protobuf

  test "varints of every length come back" do
    for bits <- 0..64, value <- [2 ** bits - 1, div(2 ** bits, 3)] do
      encoded = IO.iodata_to_binary([Wire.varint(value)])
      assert Wire.take_varint(encoded <> "rest") == {value, "rest"}
    end
  end

  test "iodata in a bytes field is written without being joined" do
    part = :binary.copy("abc", 100_000)
    request = %V1.PutTensorRequest{part: {:chunk, [part, "d", [part]]}}
    iodata = V1.PutTensorRequest.encode_to_iodata(request)
    assert Enum.count(List.flatten(iodata), &:erts_debug.same(&1, part)) == 2
    decoded = V1.PutTensorRequest.decode(IO.iodata_to_binary(iodata))
    assert decoded.part == {:chunk, part <> "d" <> part}
  end

  test "a text that is kept does not keep the message that it came in" do
    refs = for number <- 1..1_000, do: %V1.Ref{id: "ref-#{number}"}
    page = V1.RefPage.decode(V1.RefPage.encode(%V1.RefPage{refs: refs}))
    for %{id: id} <- page.refs, do: assert(:binary.referenced_byte_size(id) < 100)
    name = String.duplicate("n", 500)
    group = %V1.Group{name: name, backend: String.duplicate("b", 100_000)}
    decoded = V1.Group.decode(V1.Group.encode(group))
    assert decoded == group
    assert :binary.referenced_byte_size(decoded.name) == 500
  end

  test "empty iodata is the default of a plain bytes field" do
    assert V1.Tensor.encode(%V1.Tensor{data: [[], ""]}) == ""
    assert V1.PutTensorRequest.encode(%V1.PutTensorRequest{part: {:chunk, [[]]}}) == <<18, 0>>
  end

  test "unknown fields are kept and written again after the known ones" do
    bytes = <<0xA0, 6, 5, 0x0A, 1, ?g>>
    call = V1.Call.decode(bytes)
    assert call.group == "g"
    assert call.__unknown_fields__ == [{100, 0, 5}]
    assert V1.Call.encode(call) == <<0x0A, 1, ?g, 0xA0, 6, 5>>
  end

  test "absent and zero differ where a field is optional" do
    assert V1.GatherRequest.decode("").dim == nil
    assert V1.GatherRequest.decode(V1.GatherRequest.encode(%V1.GatherRequest{dim: 0})).dim == 0
  end

  test "what a field cannot hold is refused" do
    for bad <- [
          %V1.Call{timeout_ms: -1},
          %V1.Call{timeout_ms: 2 ** 32},
          %V1.Call{timeout_ms: "1"},
          %V1.Call{group: :tp},
          %V1.Call{group: <<0xFF>>},
          %V1.AllReduceRequest{op: :SUM},
          %V1.AllReduceRequest{op: 2 ** 31},
          %V1.AllReduceRequest{call: %V1.Tensor{}},
          %V1.AllReduceRequest{in_place: 1},
          %V1.Arange{start: "1"},
          %V1.Arange{start: 10 ** 400},
          %V1.Tensor{data: [256]},
          %V1.Value{kind: {:int, 2 ** 63}}
        ] do
      assert_raise EncodeError, fn -> bad.__struct__.encode(bad) end
    end
  end

  test "enums map names to numbers and back, and leave unknown numbers alone" do
    assert V1.Dtype.value(:DTYPE_BFLOAT16) == 4
    assert V1.Dtype.key(4) == :DTYPE_BFLOAT16
    assert V1.Dtype.key(1234) == 1234
    assert V1.Dtype.mapping()[:DTYPE_BFLOAT16] == 4
    assert V1.Dtype.value(4) == 4
  end

  test "services list their methods with paths, types and streams" do
    put = V1.RefService.put_tensor()
    assert put.path == "/rankbridge.v1.RefService/PutTensor"
    assert {put.request, put.response} == {V1.PutTensorRequest, V1.PutTensorResponse}
    assert {put.client_stream?, put.server_stream?} == {true, false}
    assert V1.RefService.get_tensor().server_stream?
    submitted = for {_number, name, _type, _presence} <- V1.Operation.__fields__(), do: "#{name}"

    for service <- [V1.CollectiveService, V1.ObjectService, V1.PointToPointService],
        method <- service.methods() do
      name = method.path |> Path.basename() |> Macro.underscore()
      assert name in submitted
    end
  end
end
