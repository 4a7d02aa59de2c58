#!/bin/sh
# SessionStart: tells the model where the repository stands. What a SessionStart hook prints is context.

cd "${CLAUDE_PROJECT_DIR:-.}" || exit 0
git rev-parse --is-inside-work-tree >/dev/null 2>&1 || exit 0

echo "Branch: $(git branch --show-current)"
echo "Newest commits:"
git log --oneline -n 5 2>/dev/null
changed=$(git status --short | head -n 20)
[ -z "$changed" ] || printf 'Not committed:\n%s\n' "$changed"
