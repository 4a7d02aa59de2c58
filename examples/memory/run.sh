#!/bin/sh
# Two similar tasks, a script in place of the model: the second is told what the first learnt.
# Everything happens in a new folder, with a home of its own.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
export AGENTFLOW_HOME="$place/home"
cp -r "$here/shop" "$place/shop"
cd "$place/shop"
git init -q
git add -A
git -c user.name=example -c user.email=example@localhost commit -q -m begin

echo "== the first task looks for the place, and remembers it"
agentflow task --plan --yes -q --model "script:$here/crew.yaml" let gross add the tax to prices || true
agentflow memory list --kind learning

echo "== you add what you know; a key is not stored"
agentflow learn "rates are whole numbers, from the tax service, with token=sk-ant-0123456789abcdef0123456789"
agentflow memory search "which rate has the tax?"

echo "== the second task is told, and looks for nothing"
agentflow task --plan --yes --model "script:$here/crew.yaml" let net take the tax from prices
for task in .claude/agentflow/2*; do
  sed -n '/^## Recalled/,/^## /p' "$task/report.md" | grep '^- ' || true
  echo "requests of the explorer: $(grep -h -c '"RequestSent"' "$task"/runs/*explorer*.jsonl)"
done
