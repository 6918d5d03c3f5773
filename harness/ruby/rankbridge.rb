# A gang for tests in Ruby. The gang ends with the block, and with this process.
#
#   RankBridge.open(size: 4) do |gang|
#     gang.ask("create", name: "x", dtype: "float32", shape: [4], fill: "rank")
#     gang.ask("call", call: "all_reduce", of: "x", as: "y")
#     gang.ask("get", name: "y")["ranks"]["1"]["values"]
#   end

require "json"
require "open3"

module RankBridge
  # A request that failed. `ranks`: of calls, the errors by rank.
  class Error < StandardError
    attr_reader :code, :ranks

    def initialize(error)
      super("#{error["code"]}: #{error["message"]}")
      @code = error["code"]
      @ranks = error["ranks"] || {}
    end
  end

  def self.open(**options)
    gang = Gang.new
    gang.ask("open", protocol: 1, **options)
    yield gang
  ensure
    gang&.close
  end

  # A gang, driven by `rankbridge drive`. `events` has what came without an id.
  class Gang
    attr_reader :events

    def initialize(command = ENV.fetch("RANKBRIDGE_COMMAND", "rankbridge"))
      @in, @out, @process = Open3.popen2(command, "drive")
      @count = 0
      @answers = {}
      @events = []
    end

    # Asks for something, and waits for the answer.
    def ask(what, **fields)
      wait_for(start(what, **fields))
    end

    # Asks for something, and gives its id. Calls go on while others are asked for.
    def start(what, **fields)
      @count += 1
      @in.puts(JSON.generate({**fields, id: @count, do: what}))
      @count
    rescue Errno::EPIPE
      @count
    end

    # Waits for the answer to what was started.
    def wait_for(id)
      until @answers.key?(id)
        line = @out.gets or raise Error.new(@failure || {"code" => "UNAVAILABLE", "message" => "the driver has ended"})
        answer = JSON.parse(line)
        if answer["id"] then @answers[answer["id"]] = answer
        elsif answer["error"] then @failure = answer["error"]
        else @events << answer
        end
      end
      answer = @answers.delete(id)
      raise Error.new(answer["error"]) if answer["error"]

      answer["ok"]
    end

    # Ends the gang; gives the driver's status.
    def close
      @in.close unless @in.closed?
      @out.read unless @out.closed?
      @out.close unless @out.closed?
      @process.value.exitstatus
    end
  end
end
