# The helper for Ruby, tested by Minitest: `ruby test_rankbridge.rb`.

require "minitest/autorun"
require_relative "rankbridge"

class TestRankBridge < Minitest::Test
  def test_a_gang_for_a_test
    RankBridge.open(size: 3, backend: "gloo") do |gang|
      gang.ask("create", name: "x", dtype: "float32", shape: [2], fill: "rank")
      gang.ask("call", call: "all_reduce", of: "x", as: "y")
      assert_equal [3, 3], gang.ask("get", name: "y")["ranks"]["1"]["values"]

      error = assert_raises(RankBridge::Error) do
        gang.ask("call", call: "all_reduce", of: "x", but: {1 => {op: "max"}})
      end
      assert_equal "MISMATCH", error.code
      assert_equal [1], error.ranks["0"]["ranks"].select { |it| it["state"] == "disagrees" }.map { |it| it["rank"] }

      barrier = gang.start("call", call: "barrier", absent: [2], timeout_ms: 60_000)
      gang.ask("fault", kill: [2], at: "waiting")
      lost = assert_raises(RankBridge::Error) { gang.wait_for(barrier) }
      assert_equal "PEER_LOST", lost.code
      assert_equal [2], gang.ask("form")["replaced"]
      gang.ask("call", call: "barrier", expect: {ok: true})
      # Events come beside the answers, and may come later.
      gang.ask("call", call: "barrier") until gang.events.any? { |it| it["event"] == "replaced" }
      assert_equal 0, gang.close
    end
  end
end
