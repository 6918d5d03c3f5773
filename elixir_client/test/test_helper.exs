# The process of this file lives as long as the tests.
RankBridge.Test.Telemetry.load_first()

# Most tests keep processes of the ranks busy, too: twice as many at once, the default, take no less time.
# What is awaited comes late where other tests keep all cores busy.
# The timeout of a test is for what hangs.
ExUnit.start(
  max_cases: System.schedulers_online(),
  assert_receive_timeout: 5_000,
  exclude: RankBridge.Test.Sampled.excluded(),
  timeout: 240_000
)
