#!/usr/bin/env python3
"""$EVENT$: runs $WHEN$.

stdin is one JSON object: $KEYS$;
in addition session_id, transcript_path, cwd, hook_event_name, phase, iteration and agent.
Exit 0 lets things go on. Exit 2 $BLOCK$; stderr is the reason.
Try it: agentflow hooks test --event $EVENT$
"""

import json
import sys

event = json.load(sys.stdin)

# An example: refuse whatever holds this marker. Replace it by what you never want here.
if "DO-NOT-DO-THIS" in json.dumps(event):
    print("This is not wanted here: say what to do instead.", file=sys.stderr)
    sys.exit(2)

# Instead of an exit code, JSON on stdout can say more:
# print(json.dumps({"systemMessage": "a line for the person"}))
