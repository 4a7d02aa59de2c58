# Writes one line for each test of Minitest, in the folder above this file.
require "json"

module Minitest
  class AgentflowReporter < AbstractReporter
    PLACE = File.expand_path("../../minitest-#{Process.pid}-#{(Time.now.to_f * 1000).to_i}.jsonl", __FILE__)

    def start
      write(file: "", names: [], outcome: "begun")
    end

    def record(result)
      outcome = result.skipped? ? "skipped" : result.passed? ? "passed" : "failed"
      owner = result.respond_to?(:klass) ? result.klass : result.class.name
      file = result.respond_to?(:source_location) ? result.source_location.first : ""
      write(file: file, names: [owner, result.name], outcome: outcome)
    end

    private

    def write(line)
      File.write(PLACE, JSON.generate(line) + "\n", mode: "a")
    end
  end

  def self.plugin_agentflow_init(_options)
    reporter << AgentflowReporter.new
  end
end
