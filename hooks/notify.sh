#!/bin/sh
# Notification: rings the terminal's bell, and shows the message on the desktop where that can be done.
# A hook has no terminal of its own, so it asks for the bell by `terminalSequence`.

message=$(sed -n 's/.*"message": *"\([^"\\]*\)".*/\1/p')
message=${message:-agentflow}

if command -v notify-send >/dev/null 2>&1; then
  XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)} notify-send -- agentflow "$message" >/dev/null 2>&1
elif command -v osascript >/dev/null 2>&1; then
  osascript -e 'on run argv' -e 'display notification (item 1 of argv) with title "agentflow"' -e 'end run' \
    -- "$message" >/dev/null 2>&1
fi

printf '{"terminalSequence": "\\u0007"}\n'
