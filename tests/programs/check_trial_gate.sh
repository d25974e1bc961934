#!/bin/bash
# check_trial_gate.sh - blinktrial gate: two commits of a repository are built and
# compared, and nothing of it stays

# shellcheck source=tests/programs/tool_lib.sh
. "$(dirname "$0")/tool_lib.sh"

TRIAL=$BIN/blinktrial
TESTED=(run_gate) TESTED_AS=blinktrial
# Few trials: what is looked for is large, and so is what a busy machine makes of
# one commit.
FEW=(--max-trials=10 --repeats=1 --margin=40)

# Variables that the gate has, NAME=VALUE
HOOKED=()

run_gate()
{
	(become_gate "$@")
}

become_gate()
{
	cd repository
	exec env TMPDIR="$SCRATCH/temporary" "${HOOKED[@]}" "$TRIAL" gate "$@"
}

# A program that sleeps, as long as the file says that it is built from; commits
# "quick" and "slow", which takes ten times as long, and one that fails.
make_repository()
{
	mkdir -p "$SCRATCH/temporary" repository
	cd repository
	git init -q .
	# shellcheck disable=SC2016 # it looks when it runs
	printf '#!/bin/sh\nsleep 0.0$(cat length)\n' >program
	chmod +x program
	commit 05 quick
	commit 50 slow
	commit 'no number' broken
	git checkout -q --detach slow
	echo dirty >length
	cd ..
	state >before
}

# commit LENGTH NAME
commit()
{
	echo "$1" >source
	git add -A
	git -c user.name=n -c user.email=e commit -q -m "$2"
	git branch "$2"
}

# All that the repository has: files, the index, branches, work trees
state()
{
	(
		cd repository
		git status --porcelain
		git for-each-ref
		git worktree list
		find . -name index -o -path ./.git -prune -o -type f -print |
			sort | xargs sha256sum
	)
}

expect_untouched()
{
	state | expect_same before -
	[ -z "$(ls -A "$SCRATCH/temporary")" ] || fail "$(ls "$SCRATCH/temporary")"
}

# gate STATUS BEFORE AFTER ARGUMENT...
gate()
{
	local want=$1 before=$2 after=$3 status=0
	shift 3

	run_gate --before="$before" --after="$after" \
		--build='cp source length' "${FEW[@]}" "$@" >out 2>err || status=$?
	[[ $status =~ ^($want)$ ]] || fail "status $status: $(cat err out)"
	expect_untouched
}

case_verdicts()
{
	make_repository
	COLUMNS=80 gate 1 quick slow -- ./program
	[ "$(awk 'length > 80' out)" = "" ] || fail "wider than a terminal"
	expect_match '^at most 30 trials to run$' out
	expect_match '^(./program)? +10 .* slower$' out
	expect_match '^slower: 1 of 1$' out
	gate 6 slow quick -- ./program
	expect_match '^faster: 1 of 1$' out
	gate '0|7' quick quick -- ./program
}

case_forms()
{
	make_repository
	gate 1 quick slow --out="$PWD/record" --json="$PWD/j" --junit="$PWD/x" \
		--markdown="$PWD/m" -n one -n two -- ./program './program again'
	python3 - <<-'END'
		import json, xml.etree.ElementTree as xml
		found = json.load(open("j"))
		assert found["schema"] == "blinktrial-gate-1"
		assert [c["name"] for c in found["commands"]] == ["one", "two"]
		assert {c["verdict"] for c in found["commands"]} == {"slower"}
		assert xml.parse("x").getroot()[0].get("failures") == "2"
	END
	expect_match '^\| .one. \| 10 \|' m
	for record in 1 2; do
		expect_status 0 "$TRIAL" validate "record/$record"
	done
}

# What a CI service has: a shallow clone without branches, and the commit before
# fetched beside it; what a hook of git has: variables that name a repository.
# The build sees the tree that it is in.
case_shallow()
{
	make_repository
	git clone -q --depth=1 --branch=slow "file://$PWD/repository" clone
	(
		cd clone
		git checkout -q --detach
		git branch -q -D slow
		git fetch -q --depth=1 origin "$(git -C ../repository rev-parse quick)"
		git branch -q quick FETCH_HEAD
		git update-ref refs/kept/quick quick
		git branch -q -D quick
	)
	mv repository original
	mv clone repository
	state >before
	HOOKED=(GIT_DIR="$PWD/nosuch")
	gate 1 refs/kept/quick HEAD \
		--build='git cat-file -e HEAD:program && cp source length' -- ./program
	expect_match '^slower: 1 of 1$' out
}

# A name of any bytes; the result is printed though a file cannot be written.
case_odd_names()
{
	make_repository
	gate 1 quick slow --json="$PWD/j" --junit="$PWD/x" --markdown="$PWD/m" \
		-n $'a\xff`b|<i>&"\x01' -- ./program
	python3 -c 'import json, xml.etree.ElementTree as xml
json.load(open("j", encoding="utf-8"))
xml.parse("x")'
	expect_match '^slower: 1 of 1$' out
	gate 3 quick slow --json=/dev/full -- ./program
	expect_match '^slower: 1 of 1$' out
	expect_match '^blinktrial: /dev/full: No space left on device$' err
}

# A command that fails after the change is a finding, before it is none.
case_command_fails()
{
	make_repository
	gate 1 quick broken -- ./program
	expect_match '^failed: 1 of 1$' out
	gate 1 broken quick -- ./program
	expect_match '^blinktrial: before: ' err
}

case_refused()
{
	local good=(--before=quick --after=slow --build=true)

	make_repository
	expect_refused 2 '^--before: .nosuch. is no commit in' --before=nosuch \
		--after=slow --build=true -- true
	expect_refused 2 '^--before: .--all. is no commit in' --before=--all \
		--after=slow --build=true -- true
	expect_refused 2 '^--build: is missing' --before=quick --after=slow -- true
	expect_refused 2 '^gate: names no command' "${good[@]}"
	expect_refused 2 '^--until: is half the margin' "${good[@]}" --until=1 -- true
	expect_refused 2 '^--trials: is not for a gate: see --max-trials' \
		"${good[@]}" --trials=9 -- true
	expect_refused 2 '^--marging=2: .* is --margin meant' "${good[@]}" \
		--marging=2 -- true
	expect_status 2 "$TRIAL" gaet --before=quick -- true 2>err
	expect_match '^blinktrial: --before=quick: is for blinktrial gate$' err
	expect_refused 2 '^--margin: 0 would let no commit pass: ' "${good[@]}" \
		--margin=0.0% -- true
	expect_refused 2 '^--max-trials: is below 10, ' "${good[@]}" \
		--max-trials=9 -- true
	expect_refused 2 'needs a shell' "${good[@]}" -- 'a | b'
	expect_refused 3 '^/nosuch/x: No such file or directory' "${good[@]}" \
		--junit=/nosuch/x -- true
	expect_status 1 run_gate "${good[@]/%=true/='echo one; echo two >&2; exit 3'}" \
		-- true >out 2>err
	expect_match '^  two$' err
	expect_match '^blinktrial: --build: before: ended with status 3$' err
	expect_untouched
	rm -rf repository/.git
	expect_refused 2 '^git: not a git repository' "${good[@]}" -- true
}

# case_interrupted BUILD COMMAND WORDS: in the middle of one of them, twice, as
# timeout(1) does it
case_interrupted()
{
	local gate

	make_repository
	become_gate --before=quick --after=slow --build="touch $PWD/at; $1" -- "$2" \
		>out 2>err &
	gate=$!
	wait_until test -e at
	[ "$2" = true ] || wait_until grep -q '^timing' out
	kill -TERM "$gate" || fail "it is gone"
	kill -TERM "$gate" 2>kill.err || true
	expect_status 143 wait "$gate"
	expect_match "^blinktrial: interrupted: $3" err
	expect_untouched
	! pgrep -f "sleep 1234$" >/dev/null || fail "a process is left"
}

check verdicts case_verdicts
check forms case_forms
check shallow case_shallow
check odd_names case_odd_names
check command_fails case_command_fails
check refused case_refused
check interrupted_build case_interrupted 'sleep 1234' true 'while before was built'
check interrupted_trials case_interrupted true 'sleep 1234' 'before the first trial'
finish
