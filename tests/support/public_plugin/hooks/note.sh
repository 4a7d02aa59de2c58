#!/bin/sh
# Say that a file was changed.
echo '{"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "review-kit saw this change"}}'
