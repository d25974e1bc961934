#!/bin/bash
# check_trial_cost.sh - what a sort costs: prices, counters of energy, a meter
#
# The counters are files of a small tree, which a sorter of ours counts on: it
# takes as much energy as the test says.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

TRIAL=$BIN/blinktrial REPORT=$BIN/blinkreport
TESTED=(run_trial) TESTED_AS=blinktrial
PRICES=$REPO/results/prices-example.csv
TREES=$REPO/tests/data/machines

run_trial()
{
	timeout 300 "$TRIAL" --scenario=pagecache --records=2000 --out=record \
		"$@"
}

# expect_trial STATUS ARGUMENT...: of few records; in ./out and ./err
expect_trial()
{
	local want=$1 status=0
	shift

	run_trial "$@" >out 2>err </dev/null || status=$?
	[ "$status" = "$want" ] ||
		fail "status $status, not $want: $*: $(head -c 400 err)"
}

# ask EXPRESSION: true of the record's design and trials
ask()
{
	/usr/bin/python3 - "$1" <<-'END' || fail "not so: $1"
		import json, sys
		design = json.load(open("record/design.json"))
		trials = [json.loads(line) for line in open("record/trials.jsonl")]
		sys.exit(not eval(f"({sys.argv[1]})"))
	END
}

# sorter: a blinksort that runs ./before_sort before each trial's sort; $TRIAL
# beside it
sorter()
{
	local name

	mkdir programs
	for name in blinkgen blinkprobe blinkval blinksh blinktrial; do
		ln -s "$BIN/$name" "programs/$name"
	done
	TRIAL=$PWD/programs/blinktrial
	{
		printf '#!/bin/bash\nHERE=%q BIN=%q\n' "$PWD" "$BIN"
		cat <<-'END'
			case "$*" in
			*record/work/in*) "$HERE/before_sort" || exit ;;
			esac
			exec "$BIN/blinksort" "$@"
		END
	} >programs/blinksort
	{
		printf '#!/bin/bash\ncd %q || exit\n' "$PWD"
		cat
	} >before_sort
	chmod +x programs/blinksort before_sort
}

# counters MACHINE: its tree in ./powercap
counters()
{
	cp -r "$TREES/$1/sys/class/powercap" powercap
}

# --- what is recorded -------------------------------------------------------

# As a user has it: this machine may have counters, or not.
case_price_and_energy()
{
	expect_trial 0 --trials=7 --price "$PRICES" --energy --seed=1
	[ "$(wc -l <err)" -le 6 ] || fail "$(cat err)"
	[ -d /sys/class/powercap/intel-rapl:0 ] ||
		expect_match '^blinktrial: energy: not measured: no powercap' err
	expect_status 0 "$TRIAL" validate record
	ask 'design["price"]["total"] == "540.75"'
	ask 'len(trials) == 7'
	"$REPORT" record >told
	expect_match 'The machine costs 540.75 USD' told
	expect_match 'records/cent' told
	expect_match 'PennySort' told
	[ -d /sys/class/powercap/intel-rapl:0 ] ||
		expect_match 'Energy: not measured: no powercap zone' told
	expect_folder record design.json environment.json trials.jsonl
}

case_energy_intel()
{
	counters intel-desktop
	sorter <<-'END'
		count() {
			read -r energy <"powercap/intel-rapl:$1/energy_uj"
			echo $((energy + $2)) >"powercap/intel-rapl:$1/energy_uj"
		}
		count 0 500000
		count 0:0 300000
		count 0:2 30000
		count 1 900000
	END
	expect_trial 0 --trials=6 --energy --powercap=powercap
	expect_empty err
	expect_status 0 "$TRIAL" validate record
	ask '{json.dumps(t["energy"]["domains_uj"]) for t in trials} ==
	     {json.dumps({"package-0": 500000, "package-0/core": 300000,
			  "package-0/uncore": 0, "package-0/dram": 30000,
			  "psys": 900000})}'
	ask 'all(t["energy"]["counter_span_ns"] > t["whole_ns"] for t in trials)'
	"$REPORT" record >told
	expect_match '^reference +all +6 +530.0 mJ \[530.0, 530.0\] ' told
	expect_match ' 3.774 k \[3.774, 3.774\]$' told
	expect_match 'Energy is that of package-0 \+ package-0/dram \(all\)' told
	expect_match '^reference +psys +6 +900.0 mJ ' told
	"$REPORT" --format=csv record >told
	expect_match ',energy_psys_uj,noise_percent,' told
}

case_energy_begins_anew()
{
	counters amd-server
	sorter <<-'END'
		read -r energy <powercap/intel-rapl:0/energy_uj
		echo $(((energy + 400000000) % 65532610987)) \
			>powercap/intel-rapl:0/energy_uj
	END
	expect_trial 0 --trials=3 --energy --powercap=powercap
	expect_status 0 "$TRIAL" validate record
	# It began anew in one of these.
	[ "$(cat powercap/intel-rapl:0/energy_uj)" -lt 2000000000 ] ||
		fail "it did not begin anew"
	ask '[t["energy"]["domains_uj"]["package-0"] for t in trials] ==
	     [400000000] * 3'
}

# What can't be read is said, and all else is done.
case_energy_not_readable()
{
	counters intel-desktop
	rm powercap/*/energy_uj
	ln -s loop powercap/intel-rapl:0/energy_uj
	ln -s loop powercap/intel-rapl:0/loop
	expect_trial 0 --trials=1 --energy --powercap=powercap
	expect_one_line err
	expect_match '^blinktrial: energy: not measured: .*rapl:0/energy_uj: ' err
	"$REPORT" record >told
	expect_match 'Energy: not measured: ' told
}

case_energy_resumed()
{
	counters intel-desktop
	expect_trial 0 --trials=1 --energy --powercap=powercap
	rm -r powercap/intel-rapl:1
	expect_status 1 "$TRIAL" --resume --out=record >out 2>err
	expect_one_line err
	expect_match '^blinktrial: --energy: is of package-0, .* but of ' err
}

# Counters that could not be read at first can be later, such as by root.
case_energy_resumed_with_more()
{
	mkdir powercap
	expect_trial 0 --trials=2 --energy --powercap=powercap
	sed -i '$d' record/trials.jsonl
	cp -r "$TREES"/intel-desktop/sys/class/powercap .
	expect_status 0 "$TRIAL" --resume --out=record >out 2>err
	expect_status 0 "$TRIAL" validate record
	ask '[t["energy"] for t in trials] == [None] * 2'
}

# meter WATTS [SECONDS]: writes to ./log every 50 ms, until it is killed; goes on
# with the log that is there
meter()
{
	/usr/bin/python3 - "$1" "${2:-60}" <<-'END' &
		import sys, time
		with open("log", "a", buffering=1) as file:
		    if file.tell() == 0:
		        file.write("time,watts\n")
		    end = time.time() + float(sys.argv[2])
		    while time.time() < end:
		        file.write(f"{time.time():.6f},{sys.argv[1]}\n")
		        time.sleep(0.05)
	END
	meter=$!
	wait_until log_has_lines
}

log_has_lines()
{
	[ "$(wc -l <log)" -gt 3 ]
}

case_meter()
{
	meter 40
	expect_trial 0 --trials=6 --meter=log --meter-error=1,20
	kill "$meter"
	expect_empty err
	expect_status 0 "$TRIAL" validate record
	# 40 W for as long as it took, by seconds since 1970 as doubles.
	ask 'all(abs(t["energy"]["domains_uj"]["meter"] - t["whole_ns"] * 0.04)
		 <= 20 for t in trials)'
	"$REPORT" record >told
	# Such doubles are 0.2 us apart, of some ms.
	expect_match '^reference +meter +6 .* (39\.9|40\.0)[0-9] ' told
	expect_match 'times in seconds since 1970' told
	expect_match '^reference +meter +6 .* ± .* (39\.9|40\.0)[0-9] ' told
	expect_match "meter's largest error \(±\) is 1 % of the energy and 20 W" told
}

# A trial that the meter has not seen is not recorded; when the meter is back, the
# session goes on.  A hole in the log before that is in no trial.
case_meter_stops()
{
	printf 'time,watts\n%d,40\n' $(($(date +%s) - 60)) >log
	meter 40 1
	wait "$meter"
	expect_trial 3 --trials=3 --meter=log
	expect_one_line err
	expect_match '^blinktrial: .*/log: does not cover a run' err
	ask 'trials == []'
	meter 50
	expect_status 0 "$TRIAL" --resume --out=record >out 2>err
	kill "$meter"
	expect_status 0 "$TRIAL" validate record
	ask 'len(trials) == 3'
}

# --- what is refused --------------------------------------------------------

case_prices_refused()
{
	printf 'part,count,price\nall,1,500\n' >prices
	expect_refused 3 '^.*/prices:1: has no column currency' --trials=2 --price=prices
	printf 'part,count,price,currency\nall,1,500,\n' >prices
	expect_refused 3 '^.*/prices:2: has no currency' --trials=2 --price=prices
	printf 'part,count,price,currency\nall,1,-5,USD\n' >prices
	expect_refused 3 "^.*/prices:2: price '-5' is not" --trials=2 --price=prices
	printf 'part,count,price,currency\nall,1,NaN,USD\n' >prices
	expect_refused 3 "^.*/prices:2: price 'NaN' is not" --trials=2 --price=prices
	: >prices
	expect_refused 3 '^.*/prices: has no price' --trials=2 --price=prices
	expect_refused 3 '^.*/missing: No such file' --trials=2 --price=missing
}

case_meter_refused()
{
	local now

	now=$(date +%s)
	printf 'time,watts\n%d,40\n%d,40\n' $((now - 1)) $((now - 9)) >log
	expect_refused 3 '^.*/log:3: its time is not after' --trials=2 --meter=log
	printf 'time,watts\n%d,nan\n' "$now" >log
	expect_refused 3 "^.*/log:2: watts 'nan' is not a number" --trials=2 --meter=log
	printf 'time,watts\n%d,40\n' $((now - 1000)) >log
	expect_refused 3 '^.*/log: its last time is 10.. s ago' --trials=2 --meter=log
	: >log
	expect_refused 3 '^.*/log: has no reading' --trials=2 --meter=log
	expect_refused 3 '^.*/missing: No such file' --trials=2 --meter=missing
}

for name in price_and_energy energy_intel energy_begins_anew \
	energy_not_readable energy_resumed energy_resumed_with_more meter \
	meter_stops prices_refused meter_refused; do
	check $name case_$name
done
finish
