# The process of this file lives as long as the tests.
RankBridge.Test.Telemetry.load_first()
# What is awaited comes late where other tests keep all cores busy.
ExUnit.start(assert_receive_timeout: 5_000)
