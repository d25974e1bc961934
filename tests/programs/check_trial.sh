#!/bin/bash
# check_trial.sh - blinktrial as a whole: what it records, what it refuses, and
# what is left when it is killed

# shellcheck source=tests/programs/shell_lib.sh
. "$(dirname "$0")/shell_lib.sh"

TRIAL=$BIN/blinktrial REPORT=$BIN/blinkreport
TESTED=(run_trial) TESTED_AS=blinktrial
# Few enough for a trial to take a few milliseconds.
RECORDS=2000
ROUNDS=$((QUICK ? 2 : 6))

run_trial()
{
	timeout 300 "$TRIAL" "$@"
}

# trial ARGUMENT...: in ./out and ./err, its exit status in $status
trial()
{
	status=0
	run_trial "$@" >out 2>err </dev/null || status=$?
}

# expect_trial STATUS ARGUMENT...
expect_trial()
{
	local want=$1
	shift

	trial "$@"
	[ $status = "$want" ] ||
		fail "status $status, not $want: $*: $(head -c 400 err)"
}

# ask EXPRESSION [RECORD]: of the record in ./record: design, trials and
# environment are what was recorded; true is what is wanted.
ask()
{
	python3 - "$1" "${2:-record}" <<-'END' || fail "not so: $1"
		import json, sys
		folder = sys.argv[2]
		design = json.load(open(folder + "/design.json"))
		trials = [json.loads(line) for line in open(folder + "/trials.jsonl")]
		environment = json.load(open(folder + "/environment.json"))
		outcomes = [trial["outcome"] for trial in trials]
		sys.exit(not eval(f"({sys.argv[1]})"))
	END
}

expect_valid()
{
	expect_status 0 "$TRIAL" validate record
}

# The order of the lines is what the design says, worked out here by itself
# from what it promises: blocks that are complete.
expect_blocks()
{
	ask 'all(trial["trial"] == at for at, trial in enumerate(trials))'
	ask '(lambda pairs, size: all(
		sorted((t["scenario"], t["configuration"])
		       for t in trials if t["block"] == block) == pairs
		for block in range(design["trials"])))(
		sorted((s, c["name"]) for s in design["scenarios"]
		       for c in design["configurations"] if not c["skipped"]), 0)'
}

# programs NAME...: a folder ./programs with links to all but these, and
# $TRIAL there
programs()
{
	local name

	mkdir programs
	for name in blinksort blinkgen blinkval blinkprobe blinksh \
		blinktrial; do
		ln -s "$BIN/$name" "programs/$name"
	done
	rm -f "${@/#/programs/}"
	TRIAL=$PWD/programs/blinktrial
}

# fake NAME: a program of ours, from standard input, where HERE is this folder
# and BIN that of the real ones
fake()
{
	{
		printf '#!/bin/bash\nHERE=%q BIN=%q\n' "$PWD" "$BIN"
		cat
	} >"programs/$1"
	chmod +x "programs/$1"
}

# patient_blinksh: $TRIAL asks nodes that may be slow, or stopped for a while
patient_blinksh()
{
	programs blinksh
	fake blinksh <<-END
		exec "\$BIN/blinksh" ${PATIENT[*]} "\$@"
	END
}

# --- what is recorded -------------------------------------------------------

case_one_machine()
{
	expect_trial 0 --scenario=pagecache --trials=5 --records=$RECORDS \
		--ascii --out=record
	expect_empty err
	[ "$(head -n 1 out)" = '5 trials to run' ]
	expect_match '^pagecache +reference +5 +0 ' out
	expect_match '^See the results: .*/blinkreport .*/record$' out
	# As a shell takes it, from here.
	eval "$(sed -n 's/^See the results: //p' out)" >report
	expect_match '^reference +5 +0 ' report
	expect_folder record design.json environment.json trials.jsonl
	expect_valid
	ask 'outcomes == ["ok"] * 5'
	ask 'all(t["scenario_met"] is True for t in trials)'
	ask 'all(t["records"] == 2000 and t["bytes"] == 200000 for t in trials)'
	# What is timed by the sorter is within what is timed from outside.
	ask 'all(sum(t["ranks"][0]["phases_ns"].values())
		 <= t["ranks"][0]["elapsed_ns"] < t["whole_ns"] for t in trials)'
	ask 'all(t["runner"]["overhead_ns"] > 0 for t in trials)'
	ask '[bool(s["after"]) for s in environment["sessions"]] == [True]'
	ask "{t['checksum'] for t in trials} == {'$(
		"$BIN/blinkgen" -a -c $RECORDS /dev/null 2>&1)'}"
}

case_quiet()
{
	expect_trial 0 --scenario=pagecache --trials=1 --records=$RECORDS \
		--out=record --quiet --keep
	expect_empty err
	expect_empty out
	expect_folder record/work in
}

case_sweep()
{
	programs
	cat >sweep <<-'END'
		sort.threads default | 1 900
		sort.kernel  auto | scalar
		sort.by-reference no | yes
		tune.swappiness keep | 10
	END
	PATH=/usr/bin:/bin expect_trial 0 --scenario=pagecache --trials=3 \
		--records=$RECORDS --out=record --sweep=sweep
	expect_valid
	expect_blocks
	ask '[c["name"] for c in design["configurations"] if not c["skipped"]]
	     == ["reference", "control", "threads=1", "kernel=scalar"]'
	expect_match '^skipped: threads=900: .*not a number from 1 to 256' out
	expect_match '^skipped: by-reference=yes: needs a cluster$' out
	expect_match '^skipped: swappiness=10: blinktune: not found$' out
	ask '{t["ranks"][0]["threads"] for t in trials
	      if t["configuration"] == "threads=1"} == {1}'
	ask 'len({tuple(t["configuration"] for t in trials if t["block"] == b)
		  for b in range(3)}) > 1 or design["trials"] == 3'
}

# What Open MPI and MPICH tell a rank, by turns: an mpirun that needs neither.
fake_mpirun()
{
	fake "mpirun.$1" <<-'END'
		while [ "$1" != -n ]; do shift; done
		count=$2
		shift 2
		for ((rank = 0; rank < count; rank++)); do
			case $0 in
			*.mpich) PMI_RANK=$rank PMI_SIZE=$count \
				MPI_LOCALNRANKS=$count PMI_JOBID=$$ \
				"$@" & ;;
			*) OMPI_COMM_WORLD_RANK=$rank \
				OMPI_COMM_WORLD_SIZE=$count \
				OMPI_COMM_WORLD_LOCAL_SIZE=$count \
				PMIX_NAMESPACE=$$ "$@" & ;;
			esac
			ranks[rank]=$!
		done
		status=0
		for pid in "${ranks[@]}"; do wait "$pid" || status=$?; done
		exit $status
	END
}

# Ranks on this machine: each of a few has its part, and all parts are looked at.
case_ranks()
{
	programs
	fake_mpirun openmpi
	cat >sweep <<-'END'
		ranks.exchange udp | by-reference mpi-shared
		ranks.count    2 | 3
		factorial ranks.exchange ranks.count
		racing off
	END
	PATH=$PWD/programs:/usr/bin:/bin expect_trial 0 \
		--scenario=pagecache --trials=2 --records=$RECORDS --ascii \
		--out=record --sweep=sweep
	expect_valid
	expect_blocks
	expect_match '^skipped: .*mpi-shared,count=2: blinksort-mpi.openmpi: ' out
	ask 'outcomes == ["ok"] * 10'
	ask 'all(t["scenario_met"] is True for t in trials)'
	ask 'all(len(t["ranks"]) == (3 if "count=3" in t["configuration"] else 2)
		 for t in trials)'
	ask 'all(t["records"] == 2000 and t["bytes"] == 200000 for t in trials)'
	ask 'all(r["elapsed_ns"] > 0 and r["mpi_init_ns"] is None
		 for t in trials for r in t["ranks"])'
	ask "{t['checksum'] for t in trials} == {'$(
		"$BIN/blinkgen" -a -c $RECORDS /dev/null 2>&1)'}"
	expect_folder record design.json environment.json trials.jsonl
	"$REPORT" record >told
	expect_match '^2 +openmpi +by-reference +2 ' told
}

# With more ranks there are more records.
case_weak_scaling()
{
	programs
	fake_mpirun openmpi
	printf '%s\n' 'ranks.count 1 | 3' 'scaling weak' >sweep
	PATH=$PWD/programs:/usr/bin:/bin expect_trial 0 \
		--scenario=pagecache --trials=2 --records=$RECORDS \
		--out=record --sweep=sweep
	expect_valid
	ask 'outcomes == ["ok"] * 6'
	ask 'all(t["records"] == (6000 if t["configuration"] == "count=3" else 2000)
		for t in trials)'
	"$REPORT" record >told
	expect_match '^input +2,000 records of 100 bytes on each rank, binary$' told
	expect_refused 2 '^scaling weak: sorts more records with more ranks' --trials=2 \
		--scenario=pagecache --out=other --sweep=sweep \
		--price="$REPO/results/prices-example.csv"
}

# A rank whose output is another's, one that fails, and one that says nothing.
case_ranks_fail()
{
	programs blinksort
	fake_mpirun mpich
	fake mpirun.openmpi <<<'echo no slots >&2; exit 1'
	fake blinksort <<-'END'
		[ "$1" != --version ] || exec "$BIN/blinksort" --version
		[ "$PMI_RANK" = 1 ] || exec "$BIN/blinksort" "$@"
		echo >>"$HERE/calls"
		case $(wc -l <"$HERE/calls") in
		3) exit 4 ;;
		4) "$BIN/blinksort" "$@" >/dev/null ;;
		5) "$BIN/blinksort" "$@"
			"$BIN/blinkgen" -b7 1000 "$HERE/work/out.1" ;;
		*) exec "$BIN/blinksort" "$@" ;;
		esac
	END
	printf '%s\n' 'ranks.mpirun mpich | openmpi' >sweep
	mkdir work
	PATH=$PWD/programs:/usr/bin:/bin expect_trial 1 \
		--scenario=pagecache --trials=3 --records=$RECORDS --order=sequence \
		--out=record --sweep=sweep --work="$PWD/work"
	expect_valid
	expect_match '^skipped: mpirun=openmpi: no slots$' out
	ask 'outcomes == ["failed", "ok", "wrong", "ok", "ok", "ok"]'
	ask 'trials[0]["exit_status"] == 4'
	ask 'trials[1]["ranks"][1]["elapsed_ns"] is None'
	ask '"checksum" in trials[2]["message"] or "order" in trials[2]["message"]'
	expect_folder work
}

case_ranks_refused()
{
	echo 'ranks.count 2 | 3' >sweep
	expect_refused 2 '^-w: sorts on nodes' --scenario=pagecache --trials=2 \
		--out=record --sweep=sweep -w localhost
	expect_refused 2 '^beyond-memory: is for one process' --trials=2 \
		--scenario=beyond-memory --out=record --sweep=sweep
	echo precious >in.3.2
	expect_refused 3 '^.*/in.3.2: is there already' --scenario=pagecache \
		--trials=2 --out=record --sweep=sweep --work="$PWD" \
		--unverified
	echo precious | expect_same - in.3.2
}

case_same_seed()
{
	echo 'sort.threads default | 1 2 3 4' >sweep
	trial --scenario=pagecache --trials=3 --records=10 --out=a --seed=7 \
		--sweep=sweep
	trial --scenario=pagecache --trials=3 --records=10 --out=b --seed=7 \
		--sweep=sweep
	ask '[t["configuration"] for t in trials] ==
	     [json.loads(line)["configuration"] for line in
	      open("b/trials.jsonl")]' a
}

# --- what is refused --------------------------------------------------------

case_usage()
{
	local a=(--scenario=pagecache --trials=2) o=--out=record sweep

	expect_refused 2 '^--out: is missing' "${a[@]}"
	expect_refused 2 \
		'^COMMAND: is missing, such as .*; or, to time blinksort, --scenario'
	expect_refused 2 '^--scenario, --trials: are missing' $o
	expect_refused 2 "^--help: 'sweep' is no part of it" --help=sweep
	expect_refused 2 '^--ascii: takes no value' "${a[@]}" $o --ascii=yes
	expect_refused 2 '^--moon: no such option; see --help' "${a[@]}" $o \
		--moon
	"$TRIAL" --help >help
	"$TRIAL" -h | expect_same help -
	[ "$("$TRIAL" -V)" = "$("$TRIAL" --version)" ] || fail "-V"
	expect_refused 2 '^--scenario: is missing, such as --scenario=pagecache;' \
		--trials=2 $o
	expect_refused 2 '^--trials: is missing' --scenario=cache $o
	expect_refused 2 '^moon: no scenario' --scenario=moon --trials=2 $o
	expect_refused 2 '^beyond-memory: is for one machine' -w localhost $o \
		--scenario=beyond-memory --trials=2
	expect_refused 2 '^--scenario: names one twice' $o \
		--scenario=pagecache,pagecache --trials=2
	expect_refused 2 "^--trials: '0' is not" --scenario=pagecache $o \
		--trials=0
	expect_refused 2 "^--records: '1e6' is not" "${a[@]}" $o --records=1e6
	expect_refused 2 "^--order: 'by-name' is not" "${a[@]}" $o \
		--order=by-name
	expect_refused 2 "^--cache-bytes: '64Mb' is not" "${a[@]}" $o \
		--cache-bytes=64Mb
	expect_refused 2 '^--flush: no such option; see --help' "${a[@]}" $o \
		--flush
	expect_refused 2 '^--threads=1: is for a sweep, as sort.threads; see' \
		"${a[@]}" $o --threads=1 a
	expect_refused 2 '^--scenario=[a-z]*: names conditions of files: give' \
		"${a[@]}" $o -- blinksort a -o x
	expect_refused 3 '^.*sweep: No such file' "${a[@]}" $o --sweep=sweep
	for sweep in 'sort.threads 1 | 2' 'sort.threads=1' '1|2'; do
		expect_refused 2 \
			'^--sweep: names a file: write the line .* into one' \
			"${a[@]}" $o --sweep="$sweep"
	done
	expect_refused 3 '^.*record.*: No such file' $o --resume
	expect_refused 2 '^validate: name one folder: blinktrial validate DIR$' \
		validate
	expect_refused 2 '^validate: name one folder' validate a b
	expect_refused 2 '^--all: no such option; see --help$' validate --all
	mkdir empty
	: >file
	expect_refused 3 '^nowhere/design.json: No such file' validate nowhere
	expect_refused 3 '^empty/design.json: No such file' validate empty
	expect_refused 3 '^file/design.json: Not a directory' validate file
	mkfifo empty/design.json
	expect_refused 3 '^empty/design.json: is not a regular file' \
		validate empty
	rm -r empty file
	"$TRIAL" characterise --help | expect_same - help
	"$TRIAL" validate -h | expect_same - help
	expect_trial 0 --help
	expect_match '^Usage: blinktrial' out
	expect_trial 0 --version
	expect_match '^blinktrial [^ ]+$' out
}

# What was meant by a word with a mistake
case_meant()
{
	local a=(--trials=2 --out=record)

	expect_refused 2 '^--sceanrio=cache: no such option; is --scenario meant' \
		"${a[@]}" --sceanrio=cache
	expect_refused 2 '^--trial=3: no such option; is --trials meant' \
		--trial=3 --scenario=cache --out=record
	expect_refused 2 '^--noise-l=3: no such option; is --noise-limit meant' \
		--noise-l=3 "${a[@]}"
	expect_refused 2 '^--quik: no such option; is --quick meant' \
		characterise --out=record --quik
	expect_refused 2 '^characterize: is characterise meant' characterize \
		--out=record
	expect_refused 2 '^valid: is validate meant' valid record
	expect_refused 2 \
		'^x: no operand is taken: name the folder with --out=DIR$' \
		characterise x
}

# What hands give that are used to hyperfine: what to do instead
case_of_hyperfine()
{
	local option

	for option in '-m9' '--min-runs' '--max-runs=9'; do
		expect_refused 2 "^$option: use --trials" "$option" 9
	done
	for option in '--export-csv=x' '--export-markdown'; do
		expect_refused 2 "^$option: there is --export-json, and blinkreport" \
			"$option" x
	done
	expect_refused 2 '^--prepare: needs a command to time' --prepare=sync \
		--scenario=cache --trials=2 --out=x
}

case_folder_removed()
{
	mkdir folder
	(
		cd folder
		rmdir ../folder
		expect_status 3 "$TRIAL" --scenario=pagecache --trials=1 \
			--out=record >../out 2>../err
	)
	expect_one_line err
	expect_match '^blinktrial: current folder: it was removed' err
}

case_refused_scenario()
{
	local memory

	memory=$(mktemp -d /dev/shm/blinksort-check.XXXXXX)
	# shellcheck disable=SC2064 # now
	at_end "rm -rf '$memory'"
	expect_refused 1 '^platter: .*tmpfs has no disk' --scenario=platter \
		--trials=2 --out=record --work="$memory/work"
	expect_refused 1 '^cache: .*tmpfs has no disk' --unverified \
		--scenario=pagecache,cache --trials=2 --out=record \
		--work="$memory/work"
	expect_folder "$memory"
}

# The input can't be made.
case_no_room()
{
	ulimit -f 100
	expect_refused 3 '^(blinkgen|.*/in): .*too large' --scenario=pagecache \
		--trials=2 --records=20000 --out=record
}

case_unverified()
{
	expect_trial 0 --scenario=platter --trials=2 --records=$RECORDS \
		--out=record --unverified --cache-bytes=1M
	expect_valid
	ask 'all({"synced", "other-data-read"} <= {c["name"] for c in
	     t["conditions"]} for t in trials)'
	# Not on a disk whose host may cache.
	ask 'all(t["scenario_met"] is True for t in trials)' 2>told ||
		expect_match '^platter \(unverified\) ' out
	expect_folder record design.json environment.json trials.jsonl
}

# Not on a disk whose host may cache, so unverified; but within its memory.
case_beyond_memory()
{
	expect_trial 0 --scenario=beyond-memory --trials=1 --records=600000 \
		--memory=20M --out=record --unverified --cache-bytes=1M --energy \
		"--powercap=$REPO/tests/data/machines/amd-server/sys/class/powercap"
	expect_valid
	ask '[one["pass"] for one in trials[0]["energy"]["passes"]] ==
	     ["runs", "output"]'
	ask 'sum(one["ns"] for one in trials[0]["energy"]["passes"]) ==
	     trials[0]["whole_ns"]'
	ask '{"memory-limited", "input-beyond-memory"} <=
	     {c["name"] for c in trials[0]["conditions"] if c["met"]}'
	ask 'trials[0]["ranks"][0]["external"]["spilled_bytes"] > 10000000'
	ask 'design["memory_bytes"] == 20 << 20'
	"$REPORT" record >told
	expect_match '^reference +output ' told
	expect_match '^reference +all, output +1 ' told
	expect_match '^memory +20.00 MiB for the sorter' told
}

case_nothing_overwritten()
{
	mkdir work record
	for name in in out rehearsal in.first in.summary in.filler out.summary
	do
		echo precious >work/$name
		expect_trial 3 --scenario=pagecache --trials=2 --out=record/a \
			--work=work
		expect_match "work/$name: is there already" err
		echo precious | expect_same - work/$name
		expect_folder work $name
		rm work/$name
	done
	echo precious >record/thesis
	expect_trial 3 --scenario=pagecache --trials=2 --out=record
	expect_match 'record: is not empty' err
	expect_folder record thesis
}

# What no kernel tells is beside what it does, and stays with a record.
case_facts()
{
	local a=(--scenario=pagecache --trials=2 "--records=$RECORDS")

	expect_trial 0 "${a[@]}" --out=record --fact=switch=XG2600 \
		'--fact=GPU=none = 0' --fact=switch=XG2601
	expect_valid
	ask 'environment["sessions"][0]["before"]["facts"] ==
		{"switch": "XG2601", "GPU": "none = 0"}'
	ask '"facts" not in str(environment["sessions"][0]["changed"])'
	"$REPORT" record >text
	expect_match '^facts +switch: XG2601; GPU: none = 0$' text
	expect_trial 0 --resume --out=record
	expect_trial 0 --resume --out=record --fact=GPU=two \
		'--fact=memory timings=9-9-9'
	expect_valid
	ask '[session["before"]["facts"] for session
		in environment["sessions"][1:]] == [
		{"switch": "XG2601", "GPU": "none = 0"},
		{"switch": "XG2601", "GPU": "two", "memory timings": "9-9-9"}]'
	"$REPORT" --format=html -o page record
	expect_match '>memory timings<.*>9-9-9<' page
	expect_trial 0 "${a[@]}" --out=other --seed=1
	"$REPORT" compare --margin=100 other record >text || [ $? -ge 6 ]
	expect_match 'facts.GPU: None -> none = 0' text
	expect_refused 2 "^--fact: 'switch' is not NAME=VALUE" "${a[@]}" \
		--out=third --fact=switch
}

case_resume_mismatch()
{
	trial --scenario=pagecache --trials=2 --records=$RECORDS --out=record
	cp -r record before
	expect_trial 3 --scenario=pagecache --trials=2 --out=record
	expect_match 'has a record already; --resume' err
	expect_trial 2 --resume --out=record --records=7
	expect_match '^blinktrial: --records: is 7, but 2000 in' err
	expect_trial 2 --resume --out=record --scenario=cache
	expect_match '^blinktrial: --scenario: is cache, but pagecache' err
	expect_trial 2 --resume --out=record -w localhost
	expect_match '^blinktrial: -w: is localhost, but absent' err
	expect_trial 2 --resume --out=record --ascii
	expect_one_line err
	diff -r record before
	# There is nothing left to do.
	expect_trial 0 --resume --out=record --trials=2
	expect_same record/trials.jsonl before/trials.jsonl
}

# --- sorters that fail ------------------------------------------------------

# A blinksort that does as ./does says at the call of this number; 1 is the
# rehearsal.
fake_sorter()
{
	programs blinksort
	fake blinksort <<-'END'
		[ "$1" != --version ] || exec "$BIN/blinksort" --version
		calls=$(($(cat "$HERE/calls" 2>/dev/null) + 1))
		echo $calls >"$HERE/calls"
		does=$(sed -n "s/^$calls //p" "$HERE/does")
		case $does in
		fail) echo "blinksort: moon: is full" >&2; exit 4 ;;
		die) kill -SEGV $$ ;;
		# blinktrial's child is the blinkprobe that runs us.
		stop) kill -CONT "$(cut -d' ' -f4 /proc/$PPID/stat)" ;;
		hang) exec sleep "$(cat "$HERE/seconds")" ;;
		esac
		"$BIN/blinksort" "$@"
		case $does in
		unsorted) cp "$1" "$3" ;;
		short) truncate -s -100 "$3" ;;
		other) "$BIN/blinkgen" -b7 2000 "$1.other"
			"$BIN/blinksort" "$1.other" -o "$3"
			rm "$1.other" ;;
		esac
	END
}

# The end of a trial is seen late while blinktrial is stopped.
case_stopped()
{
	fake_sorter
	echo '3 stop' >does
	expect_trial 0 --scenario=pagecache --trials=3 --records=$RECORDS \
		--out=record
	expect_match '^blinktrial: trial 1 is run again: .* was stopped' err
	expect_one_line err
	expect_valid
	ask 'outcomes == ["ok"] * 3'
	[ "$(cat calls)" = 5 ] || fail "sorted $(cat calls) times"
}

case_sorter_fails()
{
	fake_sorter
	printf '%s\n' '3 fail' '4 unsorted' '6 short' '7 other' '8 die' >does
	expect_trial 1 --scenario=pagecache --trials=8 --records=$RECORDS \
		--out=record
	expect_match '^blinktrial: failed: 5 of 8 trials$' err
	expect_valid
	ask 'outcomes == ["ok", "failed", "wrong", "ok", "wrong", "wrong",
			  "failed", "ok"]'
	ask '[t["exit_status"] for t in trials] == [0, 4, 0, 0, 0, 0, 139, 0]'
	ask 'trials[1]["message"] == "blinksort: moon: is full"'
	ask '"unordered" in trials[2]["message"]'
	ask 'trials[4]["message"] == "1999 records in the output, 2000 in the " \
				     "input"'
	ask '"checksum" in trials[5]["message"]'
	ask '[t["whole_ns"] is None for t in trials] ==
	     [outcome == "failed" for outcome in outcomes]'
	expect_match '^pagecache +reference +8 +5 ' out
}

case_given_up()
{
	fake_sorter
	printf '%s fail\n' 2 3 4 >does
	expect_trial 1 --scenario=pagecache --trials=9 --records=$RECORDS \
		--out=record
	expect_one_line err
	expect_match 'given up: 3 of 3 trials failed.*moon: is full' err
	ask 'outcomes == ["failed"] * 3'
	expect_trial 1 --resume --out=record
	ask 'outcomes == ["failed"] * 3 + ["ok"] * 6'
	expect_valid
}

case_reference_fails()
{
	fake_sorter
	echo '1 fail' >does
	expect_trial 1 --scenario=pagecache --trials=2 --out=record
	expect_one_line err
	expect_match '^blinktrial: reference: blinksort: moon: is full' err
	expect_gone record
}

# --- noise ------------------------------------------------------------------

# A blinkprobe that finds 50 % at its calls in ./loud, and 0 % at others; or
# fails, if there is ./broken.
fake_probe()
{
	programs blinkprobe
	fake blinkprobe <<-'END'
		[ "$1" = noise ] || exec "$BIN/blinkprobe" "$@"
		[ ! -e "$HERE/broken" ] || { echo "blinkprobe: 2 threads: no" >&2
			exit 5; }
		echo >>"$HERE/looks"
		percent=0
		! grep -qx "$(wc -l <"$HERE/looks")" "$HERE/loud" || percent=50
		exec "$BIN/blinkprobe" "$@" | sed -E \
			"s/(\"lost_percent\": )[0-9.]+/\1$percent/g"
	END
}

# Every trial is watched, on every CPU that trials use, and no limit is set.
case_noise()
{
	echo 'sort.threads default | 1' >sweep
	expect_trial 0 --scenario=pagecache --trials=2 --records=$RECORDS \
		--out=record --sweep=sweep
	expect_empty err
	expect_valid
	ask 'all([c["cpu"] for c in n["places"][0]["cpus"]] ==
		 sorted(__import__("os").sched_getaffinity(0))
		 and n["over_limit"] is n["limit_percent"] is None
		 and n["waited_ns"] == 0
		 for n in (t["noise"] for t in trials))'
	ask 'all(t["runner"]["noise_ns"] > 50000000 for t in trials)'
}

case_noise_limit()
{
	fake_probe
	printf '%s\n' 1 2 4 5 6 >loud
	expect_trial 0 --scenario=pagecache --trials=3 --records=$RECORDS \
		--out=record --noise-limit=5 --noise-wait=1
	expect_empty err
	expect_valid
	ask '[t["noise"]["over_limit"] for t in trials] == [False, True, False]'
	ask '[t["noise"]["looks"] for t in trials] == [3, 3, 1]'
	ask '[t["noise"]["waited_ns"] > 0 for t in trials] ==
	     [True, True, False]'
	expect_match '^noise: waited .* before 2 of 3 blocks; 1 of 3 trials' out
	"$REPORT" record >told
	expect_match '1 of 3 trials began above' told
}

case_noise_refused()
{
	fake_probe
	printf '%s\n' 2 4 >loud
	expect_trial 1 --scenario=pagecache --trials=3 --records=$RECORDS \
		--out=record --noise-limit=5,refuse --noise-wait=0
	expect_one_line err
	expect_match '^blinktrial: noise: CPU .* loses 50 % of .* limit is 5 %' err
	ask 'outcomes == ["ok"]'
	# As it was begun, and so refused again, but one trial later.
	expect_trial 1 --resume --out=record
	expect_match 'the limit is 5 %' err
	ask 'outcomes == ["ok"] * 2'
	expect_trial 0 --resume --out=record --noise-limit=50
	expect_valid
	ask 'outcomes == ["ok"] * 3'
	ask '[t["noise"]["limit_percent"] for t in trials] == [5, 5, 50]'
}

# Without a limit, or with one that labels, trials go on.
case_noise_unknown()
{
	fake_probe
	touch broken
	expect_trial 0 --scenario=pagecache --trials=3 --records=$RECORDS \
		--out=record --noise-limit=5
	expect_one_line err
	expect_match '^blinktrial: the noise is not known: .* 2 threads: no' err
	expect_valid
	ask '[t["noise"]["over_limit"] for t in trials] == [None] * 3'
	ask '[t["noise"]["places"][0]["message"] for t in trials] ==
	     ["blinkprobe: 2 threads: no"] * 3'
	"$REPORT" record >told
	rm -r record
	expect_trial 0 --scenario=pagecache --trials=1 --records=$RECORDS \
		--out=record --quiet
	expect_empty err
	expect_trial 1 --scenario=pagecache --trials=3 --records=$RECORDS \
		--out=other --noise-limit=5,refuse
	expect_match "^blinktrial: noise: can't be watched, as the limit" err
}

# --- ended ------------------------------------------------------------------

lines_of()
{
	(wc -l <"$1") 2>/dev/null || echo 0
}

has_lines()
{
	[ "$(lines_of record/trials.jsonl)" -ge "$1" ]
}

# A blinksort that never ends after so many calls of it, unless there is a file
# "go": however late blinktrial is killed, trials are left to run.
fake_endless()
{
	programs blinksort
	fake blinksort <<-END
		[ "\$1" != --version ] || exec "\$BIN/blinksort" --version
		echo >>"\$HERE/calls"
		[ -e "\$HERE/go" ] || [ "\$(wc -l <"\$HERE/calls")" -le $1 ] ||
			exec sleep 100000
		exec "\$BIN/blinksort" "\$@"
	END
}

case_kill()
{
	local round pid have=0 left=(--scenario=pagecache --trials=40
		--records=500 "--sweep=$PWD/sweep")

	echo 'sort.threads default | 1' >sweep
	fake_endless $((100 / ROUNDS))
	for ((round = 0; round < ROUNDS; round++)); do
		: >calls
		"$TRIAL" "${left[@]}" --out=record >/dev/null 2>&1 &
		pid=$!
		[ $((round % 2)) = 1 ] || wait_until has_lines $((have + 1))
		sleep "0.0$((RANDOM % 100))"
		kill -KILL "$pid"
		wait "$pid" 2>/dev/null || true
		[ ! -f record/design.json ] || left=(--resume)
		# What is there now is acknowledged: it stays as it is.
		! [ -f acknowledged ] ||
			head -n "$have" record/trials.jsonl |
			expect_same - acknowledged
		have=$(lines_of record/trials.jsonl)
		head -n "$have" record/trials.jsonl >acknowledged
	done
	touch go
	expect_trial 0 "${left[@]}" --out=record
	head -n "$have" record/trials.jsonl | expect_same - acknowledged
	ask 'len(trials) == 120'
	expect_blocks
	expect_valid
	ask 'environment["sessions"][0]["after"] is None'
	expect_folder record design.json environment.json trials.jsonl
}

# Nothing is there yet but what a new attempt takes for its own.
case_kill_before_record()
{
	local round

	for ((round = 0; round < ROUNDS; round++)); do
		"$TRIAL" --scenario=pagecache --trials=1 --records=100 \
			--out=record >/dev/null 2>&1 &
		sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
		kill -KILL $! 2>/dev/null || true
		wait $! 2>/dev/null || true
		[ ! -f record/design.json ] || rm -rf record
	done
	# What it can have left at most.
	mkdir -p record/work
	rm -f record/design.json
	touch record/trials.jsonl record/design.json.new
	(cd record/work && touch in out)
	expect_trial 0 --scenario=pagecache --trials=1 --records=100 \
		--out=record
}

hung()
{
	pgrep -f -- "^sleep $(cat seconds)\$" >/dev/null
}

nobody_hung()
{
	! hung
}

# A sorter that hangs: $pid is the blinktrial that waits for it.
start_hung()
{
	fake_sorter
	echo "$((50000 + RANDOM)).$$" >seconds
	echo '4 hang' >does
	"$TRIAL" --scenario=pagecache --trials=5 --records=$RECORDS \
		--out=record >out 2>err &
	pid=$!
	wait_until hung
}

case_signal()
{
	local pid

	start_hung
	kill -TERM "$pid"
	expect_status 143 wait "$pid"
	expect_one_line err
	expect_match '^blinktrial: interrupted: 2 trials.*--resume' err
	nobody_hung
	ask 'outcomes == ["ok", "ok"]'
	ask 'environment["sessions"][0]["after"] is not None'
	expect_trial 0 --resume --out=record
	expect_valid
	ask 'outcomes == ["ok"] * 5'
}

case_killed_with_sorter()
{
	local pid

	start_hung
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	wait_until nobody_hung
	ask 'outcomes == ["ok", "ok"]'
	expect_trial 0 --resume --out=record
	expect_valid
}

# --- settings of the machine ------------------------------------------------

fake_tune()
{
	programs
	fake blinktune <<-'END'
		# As the real one does: the reader of "held" may have ended.
		trap '' PIPE
		case $1 in
		status) echo '{"journal_sha256": "abc"}'; exit ;;
		hold) ;;
		*) exit 1 ;;
		esac
		case $2 in
		moon=*) echo "blinktune: moon: unsupported" >&2; exit 5 ;;
		esac
		echo "held $2" >>"$HERE/tuned"
		echo held
		cat >/dev/null
		echo "reverted $2" >>"$HERE/tuned"
	END
}

case_tuning()
{
	fake_tune
	cat >sweep <<-'END'
		tune.swappiness 60 | 10
		tune.moon keep | full
	END
	expect_trial 0 --scenario=pagecache --trials=6 --records=$RECORDS \
		--out=record --sweep=sweep
	expect_valid
	expect_match '^skipped: moon=full: blinktune: moon: unsupported' out
	ask '{t["tuning"]["profile"] for t in trials
	      if t["configuration"] == "swappiness=10"} == {"swappiness=10"}'
	ask '{t["tuning"]["journal_sha256"] for t in trials} == {"abc"}'
	# Always one at a time, and nothing left.
	awk '/^held/ { open++ } /^reverted/ { open-- }
		open < 0 || open > 1 { exit 1 } END { exit open }' tuned
	# Trials that want the same share it: reference and control do.
	[ "$(grep -c '^held' tuned)" -lt 20 ]
}

all_reverted()
{
	[ "$(grep -c '^held' tuned)" = "$(grep -c '^reverted' tuned)" ]
}

case_tuning_killed()
{
	local pid

	fake_tune
	echo 'tune.swappiness 60 | 10' >sweep
	"$TRIAL" --scenario=pagecache --trials=5000 --records=$RECORDS \
		--out=record --sweep=sweep >/dev/null 2>&1 &
	pid=$!
	wait_until has_lines 3
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	wait_until all_reverted
}

# --- many nodes -------------------------------------------------------------

case_nodes()
{
	patient_blinksh
	echo 'sort.schedule rounds | all-at-once' >sweep
	expect_trial 0 -w "^$WCOLL" --scenario=pagecache --trials=1 \
		--records=$RECORDS --out=record --sweep=sweep
	expect_valid
	ask 'outcomes == ["ok"] * 3 and len(design["hosts"]) == 4'
	ask 'all(len(t["ranks"]) == 4 and t["scenario_met"] for t in trials)'
	ask 'all(t["records"] == 2000 for t in trials)'
	ask "{t['checksum'] for t in trials} == {'$(
		"$BIN/blinkgen" -c $RECORDS /dev/null 2>&1)'}"
	ask 'all(max(r["process_ns"] for r in t["ranks"]) < t["whole_ns"]
		 for t in trials)'
	ask 'all(set(t["counters"]["nodes"]) == set(design["hosts"])
		 for t in trials)'
	ask '[p["host"] for p in trials[0]["noise"]["places"]] == design["hosts"][:1]
	     and all(p["cpus"] for p in trials[0]["noise"]["places"])'
	expect_folder record design.json environment.json trials.jsonl
}

# Values with places of their own; and an mpirun that starts its ranks by way of
# the daemons.
case_nodes_places()
{
	local names

	names=$(sed 's/:.*//' "$WCOLL" | paste -sd ,)
	patient_blinksh
	fake mpirun.openmpi <<-'END'
		while [ "$1" != -n ]; do
			[ "$1" != plm_rsh_agent ] || agent=$2
			[ "$1" != --host ] || IFS=, read -r -a hosts <<<"$2"
			shift
		done
		shift 2
		for rank in "${!hosts[@]}"; do
			"$agent" "${hosts[rank]}" \
				"OMPI_COMM_WORLD_RANK=$rank JOB=$$ $(
				printf "'%s' " "$@")" &
			ranks[rank]=$!
		done
		for pid in "${ranks[@]}"; do wait "$pid" || exit; done
	END
	fake blinksort-mpi.openmpi <<-END
		exec "\$BIN/blinksort" --nodes=$names --rank=\$OMPI_COMM_WORLD_RANK \
			--job=\$JOB "\$@"
	END
	mkdir other
	cat >sweep <<-END
		machine.place a | b c
		  work b $PWD/other
		  skip nowhere
		machine.net a | b
		  nodes b $names
		ranks.exchange udp | mpi-tcp by-reference
		  only cluster
		together machine.place=b ranks.exchange=mpi-tcp
		unverified
	END
	PATH=$PWD/programs:/usr/bin:/bin expect_trial 0 -w "^$WCOLL" \
		--scenario=pagecache --trials=1 --records=$RECORDS --out=record \
		--sweep=sweep
	expect_valid
	expect_match '^skipped: place=c: nowhere$' out
	expect_match '^skipped: exchange=by-reference: is for ranks of one' out
	ask 'outcomes == ["ok"] * 6'
	ask 'sorted(t["configuration"] for t in trials) == [
		"control", "exchange=mpi-tcp", "net=b", "place=b",
		"place=b,exchange=mpi-tcp", "reference"]'
	ask 'all(len(t["ranks"]) == 4 and t["scenario_met"] for t in trials)'
	ask "{t['checksum'] for t in trials} == {'$(
		"$BIN/blinkgen" -c $RECORDS /dev/null 2>&1)'}"
	"$REPORT" record >told
	expect_match '^4 +openmpi +mpi-tcp +1 ' told
	expect_folder other
	expect_folder record design.json environment.json trials.jsonl
}

# A folder that was there before stays, and what is in it.
case_nodes_folder()
{
	patient_blinksh
	mkdir theirs
	echo theirs >theirs/file
	expect_trial 0 -w "^$WCOLL" --scenario=pagecache --trials=1 \
		--records=100 --out=record --work="$PWD/theirs"
	expect_folder theirs file
	rm theirs/file
	expect_trial 0 -w "^$WCOLL" --scenario=pagecache --trials=1 \
		--records=100 --out=again --work="$PWD/theirs"
	expect_folder theirs
}

case_nodes_without_key()
{
	unset BLINK_KEY
	expect_refused 2 '^--key-file: is missing' -w "^$WCOLL" \
		--scenario=pagecache --trials=1 --out=record
}

sorting()
{
	pgrep -f -- "^[^ ]*blinksort --cluster $PWD/" >/dev/null
}

nobody_sorts()
{
	! sorting
}

case_nodes_killed()
{
	local pid

	patient_blinksh
	"$TRIAL" -w "${nodes[0]},${nodes[1]}" --scenario=pagecache \
		--trials=5000 --records=$RECORDS --out=record >/dev/null 2>&1 &
	pid=$!
	wait_until has_lines 1
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	wait_until nobody_sorts
	cp record/trials.jsonl before
	"$TRIAL" --resume --out=record >out 2>err &
	pid=$!
	wait_until has_lines $(($(lines_of before) + 1))
	kill -HUP "$pid"
	expect_status 129 wait "$pid"
	expect_match '--resume' err
	head -n "$(lines_of before)" record/trials.jsonl | expect_same - before
	expect_valid
}

for name in one_machine quiet sweep ranks weak_scaling ranks_fail \
	ranks_refused same_seed usage meant of_hyperfine folder_removed no_room \
	nothing_overwritten facts resume_mismatch stopped \
	sorter_fails given_up reference_fails kill kill_before_record signal \
	killed_with_sorter \
	tuning tuning_killed noise noise_limit noise_refused noise_unknown; do
	check $name case_$name
done
if [ "$(stat -f -c %T "$SCRATCH")" != tmpfs ]; then
	check unverified case_unverified
	why=$(PYTHONPATH=$REPO/results python3 -B -c '
from trials.machine.memory_cgroup import MemoryCgroup
MemoryCgroup(100 << 20).close()' 2>&1 | tail -n 1) || true
	if [ "$why" ]; then
		skip beyond_memory "no memory cgroup: $why"
	else
		check beyond_memory case_beyond_memory
	fi
else
	skip unverified "$SCRATCH has no disk"
	skip beyond_memory "$SCRATCH has no disk"
fi
if [ -d /dev/shm ] && [ "$(stat -f -c %T /dev/shm)" = tmpfs ]; then
	check refused_scenario case_refused_scenario
else
	skip refused_scenario "no tmpfs at /dev/shm"
fi
cluster_up 4 -- --allow "$REPO/results"
for name in nodes nodes_places nodes_folder nodes_without_key nodes_killed; do
	check $name case_$name
done
finish
