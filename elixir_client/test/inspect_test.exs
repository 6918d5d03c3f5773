defmodule RankBridge.InspectTest do
  @moduledoc "What is shown of a struct is short, however many ranks there are, and asks nobody."

  use ExUnit.Case, async: true

  alias RankBridge.Error.RankDetail
  alias RankBridge.Gang.{Channels, View}
  alias RankBridge.Operations.Plan

  alias RankBridge.{
    Abilities,
    Error,
    Graph,
    Group,
    Layout,
    Mesh,
    Operation,
    Place,
    Queue,
    RankStatus,
    Ref,
    Tensor
  }

  @ranks Enum.to_list(0..4_095)

  defp place, do: %Place{host: "host", local_rank: 0}
  defp group, do: %Group{name: "all", ranks: @ranks, places: for(_rank <- @ranks, do: place())}

  # One of each kind that can be large.
  defp large do
    failed = %Error{reason: :peer_lost, message: "rank 1 is lost", rank: 0, group: "all"}
    detail = %RankDetail{rank: 1, rank_in_group: 1, state: :lost, detail: "its links were closed"}

    abilities = %Abilities{
      collectives: List.duplicate(:all_reduce, 30),
      dtypes: RankBridge.Dtype.all(),
      reductions: %{sum: RankBridge.Dtype.all(), max: RankBridge.Dtype.all()}
    }

    [
      group(),
      %Queue{
        name: "q",
        group: "all",
        ranks: @ranks,
        writer_rank_in_group: 0,
        reader_ranks_in_group: tl(@ranks)
      },
      %Graph{name: "g", ranks: @ranks, operations: List.duplicate(:all_reduce, 1_000)},
      %Operation{id: RankBridge.Id.uuid(), name: :all_reduce, ranks: @ranks, timeout: 1},
      Mesh.plan!([dp: 64, tp: 64], @ranks,
        places:
          for(rank <- @ranks, do: %Place{host: "h#{div(rank, 8)}", local_rank: rem(rank, 8)})
      ),
      Layout.in_blocks!(4_096, buffers: 8, coordinators: 1),
      abilities,
      %RankStatus{
        rank: 3,
        host: "host",
        groups: List.duplicate(group(), 100),
        sessions: List.duplicate({RankBridge.Id.uuid(), 1, 1}, 100),
        endpoints: List.duplicate("unix:/run/job/rank.sock", 10),
        abilities: abilities
      },
      %{
        failed
        | ranks: List.duplicate(detail, 4_096),
          outcomes: for(rank <- @ranks, do: {rank, failed})
      },
      %Plan{
        name: :all_reduce,
        gives: :each,
        timeout: 1,
        call: nil,
        requests: for(rank <- @ranks, do: {rank, :binary.copy("x", 1_000)})
      },
      view(),
      %Ref{id: "r1", rank: 0, dtype: :float32, shape: [4, 5]},
      Tensor.new!(:uint8, [100_000], :binary.copy("x", 100_000))
    ]
  end

  # More fields may have come to it.
  defp view do
    channel = %{transport: Nobody, head: :binary.copy("x", 500)}
    rows = for rank <- @ranks, do: {channel, "unix:/run/job/rank_#{rank}.sock"}

    Map.merge(View.__struct__(), %{
      channels: Channels.put(Channels.table(), rows),
      timeout: 1,
      known_as: MyGang,
      session_id: "s"
    })
  end

  test "of everything that can be large" do
    for %module{} = struct <- large() do
      text = inspect(struct, limit: :infinity, printable_limit: :infinity)
      name = inspect(module)
      assert String.starts_with?(String.slice(text, 0, 60), "#" <> name <> "<")
      assert {name, String.length(text)} < {name, 420}
    end
  end

  test "and says what it is" do
    for {text, struct} <- [
          {~s(#RankBridge.Group<"odd", ranks [1, 3]>), %Group{name: "odd", ranks: [1, 3]}},
          {~s(#RankBridge.Queue<"q" of group "odd", from rank 3 to [1]>),
           %Queue{
             name: "q",
             group: "odd",
             ranks: [1, 3],
             writer_rank_in_group: 1,
             reader_ranks_in_group: [0]
           }},
          {~s(#RankBridge.Graph<"g" of group "world", 1 operations, ranks [0, 1]>),
           %Graph{name: "g", ranks: [0, 1], operations: [:barrier]}},
          {~s(#RankBridge.Operation<barrier i of group "world", ranks [0]>),
           %Operation{id: "i", name: :barrier, ranks: [0], timeout: 1}},
          {~s(#RankBridge.Operation<i of group "world", ranks [0]>),
           %Operation{id: "i", ranks: [0], timeout: 1}},
          {~s(#RankBridge.Mesh<"mesh", dp 2 x tp 2, ranks [0, 1, 2, 3]>),
           Mesh.plan!([dp: 2, tp: 2], 4)},
          {~s(#RankBridge.Layout<"layout", 2 trainers, 1 buffers, 0 coordinators>),
           Layout.in_blocks!(3, buffers: 1)},
          {"#RankBridge.Gang.View<MyGang, 4096 ranks, session s>", view()},
          {"#RankBridge.Gang.View<MyGang, 4096 ranks, shared sessions>",
           %{view() | session_id: ""}}
        ],
        do: assert(inspect(struct) == text)

    assert inspect(%Error{reason: :mismatch, message: "m", rank: 1}) =~ "reason: :mismatch"
    assert inspect(%RankStatus{rank: 1, generation_state: :formed}) =~ "generation_state: :formed"
  end
end
