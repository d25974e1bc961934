#!/bin/bash
# check_schemas.sh - every JSON document that a program prints names its schema,
# and is as that schema in results/schema says
#
# MODES has each way to make a program print JSON.  What --help tells of JSON must
# be there, and so must each schema.

# shellcheck disable=SC2317 # cases are called by check
here=$(cd "$(dirname "$0")" && pwd)
# Nothing of blinktune is compiled: that library ends a test of a sanitizer.
# shellcheck source=tests/programs/tune_lib.sh
[[ ${VARIANT:-} == *[at]san ]] || . "$here/tune_lib.sh"
# shellcheck source=tests/programs/shell_lib.sh
. "$here/shell_lib.sh"

# On each line the schema of a document, and the command that prints it.  Those of
# a program run one after the other, in one folder.
# shellcheck disable=SC2016 # they are evaluated when they run
readonly MODES='
blinksort-sort-1 blinksort in -o out --json
blinksort-sort-1 blinksort in -o out --json --checksum --threads=1
blinksort-sort-1 blinksort in -o - --json 2>&1 >/dev/null
blinksort-sort-1 blinksort - -o out --json -S 10M <in
blinksort-sort-1 blinksort - -o out --json -S 10M <in \
	--disk-rates=1G:1G:1G --compress=auto
blinksort-sort-1 blinksort - -o out --json -S 10M <in --record-size=1
blinksort-sort-1 blinksort - -o out --json -S 10M <in --record-size=100000
blinksort-sort-1 on_nodes blinksort --cluster $PWD/in.%r -o $PWD/out.%r --json
blinksort-sort-1 on_nodes blinksort --cluster $PWD/in.%r -o $PWD/out.%r --json \
	--checksum -S 10M
blinksort-plan-1 blinksort in -o out --explain --json
blinksort-plan-1 blinksort in -o out --explain --json -S 10M
blinksort-plan-1 blinksort --explain --json --suppose=4:1000 --link-rate=1G
blinksort-plan-1 blinksort --explain --json --suppose=4:1000000000 -S 100M \
	--threads=1 --link-rate=1G --disk-rates=1G:1G:1G --roles=auto
blinkprobe-memory-1 blinkprobe memory --area=64K --bytes=64K
blinkprobe-memory-1 blinkprobe memory --area=64K --bytes=64K --cpu-node=0 \
	--memory-node=0
blinkprobe-codec-1 blinkprobe codec --bytes=1M --rounds=2
blinkprobe-codec-1 blinkprobe codec --codec=zstd:3 --binary --bytes=1M
blinkprobe-spawn-1 blinkprobe spawn --rounds=2
blinkprobe-run-1 blinkprobe run -- /bin/true
blinkprobe-run-1 blinkprobe run --count=cycles,page_faults -- /bin/false
blinkprobe-network-1 on_nodes blinkprobe network --rounds=2 --bytes=64K
blinkprobe-noise-1 blinkprobe noise --time-ms=2
blinkprobe-simulate-1 blinkprobe simulate --nodes=4 --json
blinksh-run-1 shell --json -- /bin/true
blinksh-run-1 shell --json --repeat=2 -- /bin/sh -c "echo a; exit 3" || true
blinksh-run-1 shell --json -- /nowhere/program || true
blinksh-query-1 shell --json ping
blinksh-query-1 shell --json status
blinksh-query-1 shell --json cancel 00000000000000000000000000000000 || true
blinksh-query-1 shell --json -w 127.0.0.1:1 --lost-after=0.1 status || true
blinktune-list-1 tune --json list
blinktune-explain-1 tune --json explain swappiness
blinktune-plan-1 tune --json plan reference
blinktune-settings-1 tune --json status
blinktune-settings-1 tune --json verify swappiness=1 || true
blinktune-settings-1 tune --json apply swappiness=1,mtu=9000
blinktune-settings-1 tune --json confirm
blinktune-settings-1 tune --json status
blinktune-settings-1 tune --json revert
blinktune-settings-1 tune --json revert
blinktune-settings-1 tune --json hold swappiness=1
blinktune-settings-1 tune --json run turbo=on -- true || true
blinktune-nodes-1 blinktune --json -w "^$WCOLL" --root "$PWD/tree" \
	--state "$PWD/state.%r" verify swappiness=1 || true
blinktune-disks-1 tune --json disks plan --data-bytes 1000 /dev/zero
blinktrial-node-1 node make 10 0/1 ascii in
blinktrial-node-1 node examine pagecache .
blinktrial-node-1 node prepare pagecache in out
blinktrial-node-1 cp in out; node check pagecache in out
blinktrial-node-1 node counters .
blinktrial-node-1 node environment .
blinktrial-node-1 node noise
blinktrial-node-1 node remove in --then said in
blinktrial-gate-1 gate --json=../file -- true && cat file
blinktrial-design-1 cat record/design.json
blinktrial-trial-1 cat record/trials.jsonl
blinktrial-environment-1 cat record/environment.json
blinktrial-measure-1 cat machine/characterisation.jsonl
blinkreport-compare-1 judged blinkreport compare --json record record
blinkreport-exchanges-1 cat "$REPO/results/runs/exchanges.json"
blinkreport-published-1 cat "$REPO/results/published/datamation-2011.json"
'
# What is no document of ours, and why; the last two are not told of as JSON.
readonly OTHERS='
blinkprobe nothing: prints nothing
blinktune export: is a profile of tuned
blinktrial --export-json: is what hyperfine writes, for those who read that
blinkreport --format=hyperfine: the same
blinksort --trace: is what viewers of Chrome traces read
'

cluster_up 2
PATH=$BIN:$PATH

on_nodes()
{
	blinksh "${PATIENT[@]}" -q -N -- "$BIN/$1" "${@:2}"
}

shell()
{
	local patient

	patient_but "$@"
	blinksh "${patient[@]}" "$@"
}

node()
{
	blinktrial node --programs="$BIN" "$@"
}

# judged COMMAND...: one whose status is a verdict, whatever it is
judged()
{
	local status=0

	"$@" || status=$?
	[[ $status = [0167] ]]
}

gate()
{
	(cd repository && judged blinktrial gate --before=HEAD~1 --after=HEAD \
		--build=true --max-trials=10 --repeats=1 "$@") >&2
}

prepare_blinksort()
{
	blinkgen 600000 in
	blinkgen 300000 in.0
	blinkgen -b300000 300000 in.1
}

prepare_blinktune()
{
	make_tree tree
}

prepare_blinktrial()
{
	local git=(git -c user.name=n -c user.email=e)

	blinktrial --quiet --out=record --trials=10 true
	blinktrial characterise --quiet --quick --out=machine
	git init -q repository
	for _ in 1 2; do
		"${git[@]}" -C repository commit -q --allow-empty -m x
	done
}

prepare_blinkreport()
{
	blinktrial --quiet --out=record --trials=10 true
}

# case_documents PROGRAM
case_documents()
{
	local name command printed count=0 documents=()

	! declare -F "prepare_$1" >/dev/null || "prepare_$1"
	# The backslash at the end of a line is read, too.
	# shellcheck disable=SC2162
	while read name command; do
		[[ $name = "$1"-* ]] || continue
		count=$((count + 1))
		printed=$count.json
		eval "$command" >"$printed" 2>err || fail "$command: $(cat err)"
		documents+=("$name" "$printed")
	done <<<"$MODES"
	/usr/bin/python3 "$here/json_documents.py" "${documents[@]}"
}

# told PATH: prints all that its help says
told()
{
	"$1" --help
	case ${1##*/} in
	blinksort*) "$1" --help=all ;;
	blinktrial)
		"$1" --help=commands
		"$1" gate --help
		;;
	esac
}

# The options for JSON, and the verbs of programs that print it for each verb
case_told()
{
	local path program word

	for path in "$BIN"/blink*; do
		program=${path##*/}
		[[ $program != blinksort-mpi* ]] || program=blinksort
		told "$path" >help
		grep -q -i json help || continue
		sed -n 's/^.*\(--[a-z-]*json\)\>.*$/\1/p' help >words
		case $program in
		blinkprobe) sed -n 's|^.* blinkprobe \([a-z][a-z]*\).*|\1|p' help ;;
		blinktune) sed -n 's|^  \([a-z][a-z]*\) .*|\1|p' help ;;
		esac >>words
		sort -u words >unique
		while read -r word; do
			grep -q -E -e "^$program-.* $word\>" <<<"$MODES" ||
				grep -q -e "^$program $word:" <<<"$OTHERS" ||
				fail "no mode for $program $word"
		done <unique
	done
}

case_schemas()
{
	local name page=$REPO/src/programs/blinksort/blinksort-json.5

	/usr/bin/python3 "$here/json_documents.py" >schemas
	while read -r name; do
		grep -q -w -e "$name" "$page" || fail "${page##*/}: no $name"
	done <schemas
	sed -n 's/^\(blink[^ ]*\) .*/\1/p' <<<"$MODES" | sort -u >named
	diff schemas named >&2
}

for program in blinksort blinkprobe blinksh; do
	check schemas_$program case_documents $program
done
if [ ! "$SANITIZED" ]; then
	for program in blinktune blinktrial blinkreport; do
		check schemas_$program case_documents $program
	done
	check schemas_told case_told
	check schemas_named case_schemas
fi
finish
