#!/bin/sh
# A call waits because of a condition; it is approved with another input, and another one expires.
# A script plays the model. Everything happens in a new folder, with a home of its own.
set -u
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
export AGENTFLOW_HOME="$place/home"
mkdir -p "$AGENTFLOW_HOME/.config/agentflow" "$AGENTFLOW_HOME/.claude" "$place/shop"
cp "$here/config.yaml" "$AGENTFLOW_HOME/.config/agentflow/"
cp "$here/settings.json" "$AGENTFLOW_HOME/.claude/"
cd "$place/shop" || exit
printf 'release 1\n' >NOTES
printf 'test:\n\tgrep -q cents prices.txt\n' >Makefile
printf 'amounts are whole cents\n' >prices.txt
git init -q
git add -A
git -c user.name=example -c user.email=example@localhost commit -q -m begin

echo "== the call waits, and the hook is told"
agentflow task -q --model "script:$here/crew.yaml" note the release in NOTES
agentflow status
cat ../notices.jsonl

echo "== approved with another input; both are kept"
id=$(agentflow status --json | sed -n 's/.*"id": *"\(p[0-9-]*\)".*/\1/p' | head -1)
agentflow approve "$id" --args '{"command": "echo release 2 > NOTES"}' --by ann --comment "nothing is forced"
agentflow resume -q
agentflow status | grep -A3 approved
cat NOTES

echo "== nobody approves the next one in time"
sed -i.old 's/8h/1s/' "$AGENTFLOW_HOME/.config/agentflow/config.yaml"
agentflow task -q --model "script:$here/crew.yaml" note the release in NOTES once more
sleep 1
agentflow approve "$id" --by ann
agentflow resume -q
agentflow status | grep denied
