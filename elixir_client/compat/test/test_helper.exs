# The process of this file lives as long as the tests.
RankBridge.Test.Telemetry.load_first()
ExUnit.start()
