defmodule RankBridge.ErrorTest do
  use ExUnit.Case, async: true

  alias RankBridge.Error
  alias RankBridge.Error.{RankDetail, Raised}
  alias RankBridge.Proto.V1
  alias RankBridge.Transport.Status

  doctest RankBridge.Error
  doctest RankBridge.Error.RankDetail

  test "every code of the protocol has a reason of its own" do
    reasons =
      for {code, _number} <- V1.ErrorCode.mapping() do
        Error.from_proto(%V1.Error{code: code}).reason
      end

    assert length(Enum.uniq(reasons)) == map_size(V1.ErrorCode.mapping())
    assert Error.from_proto(%V1.Error{code: :ERROR_CODE_PEER_MISSING}).reason == :peer_missing
    assert Error.from_proto(%V1.Error{code: 12_345}).reason == :unspecified
  end

  test "an error of a rank keeps all that it says" do
    detail = %V1.RankDetail{rank: 3, rank_in_group: 1, state: :RANK_STATE_MISSING, detail: "late"}

    error =
      Error.from_proto(%V1.Error{
        code: :ERROR_CODE_MISMATCH,
        message: "m",
        indefinite: true,
        phase: :PHASE_ADMISSION,
        rank: 2,
        group: "tp",
        operation: "all_reduce",
        operation_id: "id",
        generation: 4,
        expected: "float32[2]",
        got: "float32[3]",
        ranks: [detail]
      })

    assert error == %Error{
             reason: :mismatch,
             message: "m",
             indefinite: true,
             phase: :admission,
             rank: 2,
             group: "tp",
             operation: "all_reduce",
             operation_id: "id",
             generation: 4,
             expected: "float32[2]",
             got: "float32[3]",
             ranks: [%RankDetail{rank: 3, rank_in_group: 1, state: :missing, detail: "late"}]
           }

    assert Exception.message(error) ==
             "mismatch at rank 2 in all_reduce of group \"tp\": m; expected float32[2], got float32[3]; " <>
               "some ranks may have done it\n  rank 3 missing: late"
  end

  test "an exception on a rank is kept with its traceback" do
    raised = %V1.Raised{
      rank: 2,
      type: "ValueError",
      text: "no batch",
      traceback: "train.py:88 in next_batch: raise\n\nTraceback (most recent call last): ...",
      where: "train.py:88 in next_batch"
    }

    proto = %V1.Error{code: :ERROR_CODE_FUNCTION_FAILED, rank: 2, raised: raised}
    assert %Error{reason: :function_failed} = error = Error.from_proto(proto)

    assert error.raised ==
             struct!(Raised, Map.take(raised, [:rank, :type, :text, :traceback, :where]))

    assert Error.from_proto(%{proto | raised: nil}).raised == nil
  end

  test "the exception is the cause of what other ranks say" do
    failed = %Error{reason: :function_failed, rank: 1, indefinite: true}

    for other <- [:peer_lost, :cancelled, :deadline_exceeded, :stale_generation],
        do: assert(Error.combine([{0, %Error{reason: other}}, {1, failed}]).rank == 1)

    # Also where it says so itself, and had not begun.
    failed = %{failed | raised: %Raised{rank: 1, type: "ValueError"}}
    stopped = %{failed | rank: 0, indefinite: false}
    assert Error.combine([{0, stopped}, {1, failed}]).rank == 1
  end

  test "a lost rank is whom its loss is about, whoever reports it" do
    lost = %V1.RankDetail{rank: 2, rank_in_group: 2, state: :RANK_STATE_LOST}
    other = %V1.RankDetail{rank: 1, rank_in_group: 1, state: :RANK_STATE_ARRIVED}
    reported = %V1.Error{code: :ERROR_CODE_PEER_LOST, rank: 0, ranks: [other, lost]}
    assert %Error{reason: :peer_lost, rank: 2} = Error.from_proto(reported)
    assert %Error{rank: 0} = Error.from_proto(%{reported | ranks: [other]})
    assert %Error{rank: 0} = Error.from_proto(%{reported | code: :ERROR_CODE_STALE_GENERATION})

    outcomes = [{0, Error.from_proto(reported)}, {2, %Error{reason: :unavailable, rank: 2}}]
    assert %Error{reason: :peer_lost, rank: 2} = Error.combine(outcomes)
  end

  test "a deadline or a lost connection is indefinite only if the call may have been processed" do
    for {code, sent?, reason, indefinite} <- [
          {:deadline_exceeded, true, :deadline_exceeded, true},
          {:deadline_exceeded, false, :deadline_exceeded, false},
          {:unavailable, true, :unavailable, true},
          {:unavailable, false, :unavailable, false},
          {:cancelled, true, :cancelled, true},
          {:unimplemented, true, :protocol, false},
          {:permission_denied, true, :not_allowed, false},
          {:unknown, true, :protocol, true}
        ] do
      error = Error.from_status(Status.new(code, "why", sent?), rank: 1, operation: "barrier")
      assert {code, sent?, error.reason, error.indefinite} == {code, sent?, reason, indefinite}
      assert error.rank == 1 and error.message =~ "why"
    end
  end

  test "a call that changes nothing is never indefinite" do
    status = Status.new(:deadline_exceeded, "late", true)
    refute Error.from_status(status, operation: "get", changes?: false).indefinite
  end

  test "a call about what was begun before is always indefinite if it has no answer" do
    for {code, sent?} <- [unavailable: false, unimplemented: true, deadline_exceeded: false] do
      status = Status.new(code, "why", sent?)
      assert Error.from_status(status, operation: "await", begun?: true).indefinite
    end

    assert Error.protocol("why", changes?: false, begun?: true).indefinite
    refute Error.protocol("why", changes?: false).indefinite
  end

  test "a call that was cancelled, or never came, at one rank explains that others missed it" do
    for reason <- [:cancelled, :unknown_operation],
        missed <- [:peer_missing, :deadline_exceeded] do
      outcomes = [{0, %Error{reason: missed}}, {1, %Error{reason: reason}}]
      assert Error.combine(outcomes).reason == reason
    end
  end

  test "a lost rank explains that the generation of the others is over, and its end that calls were cancelled" do
    chain = [:peer_lost, :unavailable, :stale_generation, :aborted, :cancelled]

    for [cause, consequence] <- Enum.chunk_every(chain, 2, 1, :discard) do
      outcomes = [{0, %Error{reason: consequence}}, {1, %Error{reason: cause}}]
      assert Error.combine(outcomes).reason == cause
    end
  end

  test "of several failures the cause is told, with every outcome" do
    cause = %Error{reason: :unknown_ref, message: "no ref", rank: 2}
    missing = %Error{reason: :peer_missing, message: "rank 2 missing", rank: 0}
    error = Error.combine([{0, missing}, {1, %{missing | rank: 1}}, {2, cause}])
    assert {error.reason, error.rank, error.indefinite} == {:unknown_ref, 2, false}
    assert [{0, %Error{}}, {1, %Error{}}, {2, ^cause}] = error.outcomes
    assert Enum.map(error.ranks, & &1.rank) == [0, 1, 2]
  end

  test "a failure is indefinite as soon as one rank has done it, or may have" do
    definite = %Error{reason: :backend_failed, rank: 0}
    refute Error.combine([{0, definite}, {1, definite}]).indefinite
    assert Error.combine([{0, definite}, {1, :ok}]).indefinite
    refute Error.combine([{0, definite}, {1, :ok}], false).indefinite
    open = %Error{reason: :deadline_exceeded, indefinite: true, rank: 1}
    assert Error.combine([{0, definite}, {1, open}]).indefinite
  end

  test "every reason has a place among the causes" do
    for {code, _number} <- V1.ErrorCode.mapping() do
      error = Error.from_proto(%V1.Error{code: code})
      assert Error.combine([{0, error}]).reason == error.reason
    end
  end

  test "a message that has all sides is shown alone" do
    text = "MISMATCH in all_reduce #1 (x1) on world\n  ranks 0-2: float32[3] sum"

    error = %Error{
      reason: :mismatch,
      message: text,
      rank: 0,
      group: "world",
      operation: "all_reduce",
      expected: "a",
      got: "b"
    }

    assert Exception.message(error) == text

    assert Exception.message(%{error | indefinite: true}) ==
             text <> "\n  some ranks may have done it"
  end
end
