#!/bin/bash
# check_stdout.sh - what a program prints is written, or its loss is told
#
# Every verb of every program that prints something runs once with a full disk as
# standard output, and once with a closed one.  It must say so in one line, and must
# not end with 0.  If the reader of a pipe has left, a program ends by SIGPIPE, as
# others do, without a word.

# shellcheck disable=SC2317 # cases are called by check
here=$(cd "$(dirname "$0")" && pwd)
# Nothing of blinktune is compiled: that library ends a test of a sanitizer.
# shellcheck source=tests/programs/tune_lib.sh
[[ ${VARIANT:-} == *[at]san ]] || . "$here/tune_lib.sh"
# shellcheck source=tests/programs/shell_lib.sh
. "$here/shell_lib.sh"

cluster_up 2

# expect_told WHY PROGRAM: it has ended with $status, and written ./err
expect_told()
{
	# What it does or refuses may be told there, too.
	grep -v '^+ \|^blinktune: disks plan: ' err >told || true
	# Not by "set -e", which the caller's "||" turns off.
	{ [ "$status" != 0 ] || fail 'exit status 0'; } &&
		expect_one_line told &&
		expect_match "^$2: standard output: (cannot write: )?$1\$" told
}

SETUP=:
# expect_full_told PROGRAM ARGUMENT...: with a full disk, after $SETUP
expect_full_told()
{
	$SETUP
	status=0
	"$BIN/$1" "${@:2}" >/dev/full 2>err </dev/null || status=$?
	expect_told 'No space left on device' "$1" || fail "$* >/dev/full"
}

# expect_loss_told PROGRAM ARGUMENT...: both ways
expect_loss_told()
{
	expect_full_told "$@"
	$SETUP
	status=0
	"$BIN/$1" "${@:2}" >&- 2>err </dev/null || status=$?
	expect_told 'Bad file descriptor' "$1" || fail "$* >&-"
}

case_information()
{
	local path

	for path in "$BIN"/blink*; do
		[ -x "$path" ] || continue
		expect_loss_told "${path##*/}" --help
		expect_loss_told "${path##*/}" --version
	done
}

# expect_silent_end PROGRAM ARGUMENT...: once the reader of its output has left
expect_silent_end()
{
	local reader writer

	mkfifo pipe
	exec {reader}<>pipe
	exec {writer}>pipe
	exec {reader}<&-
	rm pipe
	status=0
	{
		"$BIN/$1" "${@:2}" 2>err </dev/null || status=$?
	} >&"$writer"
	exec {writer}>&-
	[ $status = 141 ] || fail "$*: status $status: $(cat err)"
	expect_empty err
}

case_reader_left()
{
	local path option

	for path in "$BIN"/blink*; do
		[ -x "$path" ] || continue
		for option in --help --version; do
			expect_silent_end "${path##*/}" $option
		done
	done
	[ "$SANITIZED" ] || expect_silent_end blinktune list
}

case_shell()
{
	local form

	for form in -q '-q -N' '-q -b' --json '-q --repeat=2'; do
		# shellcheck disable=SC2086 # words are meant
		expect_loss_told blinksh "${PATIENT[@]}" $form -- \
			/usr/bin/seq 1 1000
	done
	for form in ping status "cancel $(printf '%032d' 0)"; do
		# shellcheck disable=SC2086 # words are meant
		expect_loss_told blinksh "${PATIENT[@]}" $form
		# shellcheck disable=SC2086 # words are meant
		expect_loss_told blinksh "${PATIENT[@]}" --json $form
	done
	# The worse of two statuses stays.
	status=0
	"$BIN/blinksh" "${PATIENT[@]}" -q -- /bin/sh -c 'echo out; exit 9' \
		>/dev/full 2>err || status=$?
	[ "$status" = 9 ]
	expect_match '^blinksh: standard output: No space left' err
}

case_probe()
{
	expect_loss_told blinkprobe memory --rounds=1 --area=64K --bytes=64K
	expect_loss_told blinkprobe spawn --rounds=1
	expect_loss_told blinkprobe noise --time-ms=1
	(umask 077 && "$BIN/blinksh" keygen key)
	expect_loss_told blinkprobe network --nodes="127.0.0.1:$BLINK_PORT" \
		--rank=0 --key-file=key --job=stdout
}

case_sort()
{
	local option

	"$BIN/blinkgen" 100 in
	for option in --json --checksum --explain; do
		expect_loss_told blinksort in -o out "$option"
	done
	expect_loss_told blinksort --explain --suppose=4:1000000 \
		-S 100M --threads=1 --link-rate=1G --disk-rates=1G:1G:1G
	expect_loss_told blinksort --explain --suppose=4:1000 --link-rate=1G
	expect_loss_told blinksort in -o -
	expect_loss_told blinkgen 100 -
}

new_tree()
{
	rm -rf tree state out
	make_tree tree
}

new_applied()
{
	new_tree
	tune apply swappiness=1
}

# Each verb that --help names, but those that print nothing.
case_tune()
{
	local verb form settings=(--root "$PWD/tree" --state "$PWD/state")
	local -A words=([list]='' [explain]=swappiness [plan]=swappiness=1
		[apply]=swappiness=1 [confirm]='' [verify]=swappiness=1
		[status]='' [revert]='' [hold]=swappiness=1
		[export]='--tuned low-latency'
		[disks]='plan --data-bytes 1000 /dev/zero')

	for form in '' --json; do
		for verb in "${!words[@]}"; do
			SETUP=new_tree
			case $verb in
			status | revert) SETUP=new_applied ;;
			esac
			# shellcheck disable=SC2086 # words are meant
			expect_loss_told blinktune "${settings[@]}" $form \
				$verb ${words[$verb]}
		done
	done
	# A lost standard error changes no status.
	for form in nonsense:2 'plan nope:3'; do
		# shellcheck disable=SC2086
		expect_status "${form#*:}" "$BIN/blinktune" ${form%:*} 2>&-
		# shellcheck disable=SC2086
		expect_status "${form#*:}" "$BIN/blinktune" ${form%:*} \
			2>/dev/full
	done
	sed -n 's/^  \([a-z][a-z]*\) .*/\1/p' <("$BIN/blinktune" --help) | sort -u \
		>verbs
	printf '%s\n' "${!words[@]}" run | sort >tested
	diff verbs tested >&2
}

case_trial()
{
	SETUP='rm -rf record'
	expect_loss_told blinktrial node --programs="$BIN" counters .
	status=0
	"$BIN/blinktrial" --scenario=pagecache --trials=1 --records=100 \
		--out=record >/dev/full 2>err || status=$?
	[ "$status" = 3 ]
	expect_match '^blinktrial: standard output: No space left' err
	# A lost standard error keeps nothing from its end.
	rm -r record
	"$BIN/blinktrial" --scenario=pagecache --trials=1 --records=100 \
		--out=record >out 2>&-
	[ -s record/trials.jsonl ]
	# It says nothing, but that is what it has to say of a good record.
	"$BIN/blinktrial" validate record >/dev/full
}

case_report()
{
	local format record=$REPO/results/runs/2026-11-22-zen4-1

	# What it complains of goes to standard error or nowhere.
	status=0
	"$BIN/blinkreport" missing >out 2>&- || status=$?
	[ "$status" = 3 ]
	expect_empty out
	expect_loss_told blinkreport "$record"
	# These take long, and print by the same function.
	for format in csv csv-summary html hyperfine benchfmt hlog; do
		expect_full_told blinkreport --format=$format "$record"
	done
	for format in text json; do
		expect_full_told blinkreport compare --format=$format \
			"$record" "$record"
	done
	for format in text html; do
		expect_full_told blinkreport model --format=$format \
			"$record-machine"
	done
}

check information case_information
check reader_left case_reader_left
check shell case_shell
check probe case_probe
check sort case_sort
if [ ! "$SANITIZED" ]; then
	check tune case_tune
	check trial case_trial
	check report case_report
fi
finish
