"""Asks about a call by a function, approves it with another input, and goes on: all of it from Python."""

import agentflow
from agentflow.compose.standard import ApprovalModes

careful = ApprovalModes(tools={"Bash": lambda call: "--force" in call.args["command"]})
model = "script:crew.yaml"
waits = agentflow.run_task("note the release in NOTES", model=model, capabilities=(careful,))
(item,) = waits.state.pending
print("waits:", item.tool, item.input["command"])

agentflow.decide(item.id, approved=True, args={"command": "echo release 2 > NOTES"}, by="ann")
agentflow.resume()
(decision,) = agentflow.load_task().state.decisions
print("asked:", decision["asked"]["command"])
print("ran:  ", decision["input"]["command"], "by", decision["by"], decision["via"])
