#!/bin/bash
# check_report.sh - blinkreport as a whole: formats, files, statuses, refusals

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

if [ "${VARIANT:-dyn}" != dyn ]; then
	skip report "nothing of it is compiled"
	exit 77
fi

REPORT=$BIN/blinkreport
TESTED=("$REPORT") TESTED_AS=blinkreport
RECORD=$SCRATCH/record
SLOWER=$SCRATCH/slower

# make_record FOLDER SEED [SLOWER]: 2 scenarios, of which one is not verified;
# a reference, a control and 1 variant, of 30 trials each.
make_record()
{
	/usr/bin/python3 -B - "$REPO/tests/unit" "$@" <<-'END'
		import sys
		sys.path.insert(0, sys.argv[1])
		import trial_samples

		slower = float((sys.argv + ["1"])[4])

		def times(_scenario, name, _block, rng):
		    more = 1.1 if name == "threads=1" else 1
		    return 2e7 * slower * more * rng.lognormvariate(0, 0.005)

		def alter(trial):
		    if trial["scenario"] == "platter":
		        trial["scenario_met"] = None

		trial_samples.make_record(
		    sys.argv[2], seed=int(sys.argv[3]), times=times, alter=alter,
		    trials=30, scenarios=("pagecache", "platter"),
		    sweep_text="sort.threads default | 1\n")
	END
}

# --- formats ------------------------------------------------------------------

case_text()
{
	"$REPORT" "$RECORD" >out 2>err
	expect_empty err
	expect_match '^pagecache: times in ms$' out
	expect_match '^platter \(unverified\): times in ms$' out
	expect_match '^threads=1  *30 ' out
	expect_match '^threads=1  *1\.[01].* slower' out
	[ "$(wc -L <out)" -le 100 ] || fail "wider than 100 columns"
}

case_same_bytes_each_time()
{
	local format

	for format in text csv-summary; do
		"$REPORT" --format="$format" "$RECORD" >first
		"$REPORT" "$RECORD" --format="$format" -o second
		expect_same first second
	done
}

case_csv()
{
	"$REPORT" --format=csv "$RECORD" >out
	[ "$(wc -l <out)" = 181 ] || fail "not a row a trial"
	expect_match '^trial,block,position,scenario,' out
	"$REPORT" --format=csv-summary "$RECORD" >out
	[ "$(wc -l <out)" = 7 ] || fail "not a row a configuration"
	expect_match '^platter,false,threads=1,variant,30,0,' out
}

case_hyperfine()
{
	"$REPORT" --format=hyperfine "$RECORD" >out
	/usr/bin/python3 - <<-'END'
		import json
		results = json.load(open("out"))["results"]
		assert len(results) == 6
		assert all(len(r["times"]) == 30 for r in results)
		assert 0.019 < results[0]["median"] < 0.021
	END
}

case_hlog()
{
	"$REPORT" --format=hlog "$RECORD" >out
	expect_match '^#\[Histogram log format version 1\.3\]$' out
	expect_match '^Tag=[^, ]+:reference,[0-9.]+,[0-9.]+,[0-9.]+,HISTFAAA' out
}

case_benchfmt()
{
	local name

	"$REPORT" --format=benchfmt "$RECORD" >out
	name='BenchmarkSort/scenario=pagecache/configuration=threads=1'
	[ "$(grep -c "^$name 1 [0-9]* ns/op\$" out)" = 30 ] ||
		fail "not a line a trial"
	! grep -q 'scenario=platter/' out || fail "platter was not verified"
}

case_html_and_png()
{
	"$REPORT" --format=html -o page.html --png=pictures "$RECORD"
	expect_folder . page.html pictures
	expect_match '<html' page.html
	expect_match '</html>' page.html
	expect_match 'platter \(unverified\)' page.html
	[ "$(find pictures -name '*.png' -size +1k)" ] || fail "no pictures"
}

# --- files --------------------------------------------------------------------

case_output_is_replaced_whole()
{
	echo old >out
	ln out other
	ln -s out link
	"$REPORT" -o link "$RECORD"
	expect_match '^pagecache' out
	[ -L link ] || fail "the link is gone"
	[ "$(cat other)" = old ] || fail "the old file was written into"
	expect_folder . link other out
	"$REPORT" -o /dev/null "$RECORD"
	[ -c /dev/null ] || fail "/dev/null is gone"
}

# expect_mode MODE FILE
expect_mode()
{
	[ "$(stat -c %a "$2")" = "$1" ] ||
		fail "$2 has mode $(stat -c %a "$2"), not $1"
}

case_output_keeps_its_permissions()
{
	echo old >out
	chmod 600 out
	"$REPORT" -o out "$RECORD"
	expect_mode 600 out
	(umask 027 && "$REPORT" --output=new "$RECORD")
	expect_mode 640 new
	[ "$UID" = 0 ] || return 0
	chown 65533:65532 out
	"$REPORT" -o out "$RECORD"
	[ "$(stat -c %u:%g out)" = 65533:65532 ] ||
		fail "out belongs to $(stat -c %u:%g out)"
	expect_mode 600 out
	# Where all may write, as in /tmp, that user gets nothing.
	mkdir -m 1777 shared
	mv out shared
	expect_refused 3 "shared/out: Permission denied" -o shared/out \
		"$RECORD"
}

# A folder in which names can be made, and not taken away again
case_output_stays_beside_it()
{
	mkdir folder
	echo old >folder/out
	at_end 'chattr -a folder'
	chattr +a folder
	run_tested -o folder/out "$RECORD"
	[ "$status" = 3 ] || fail "exit status $status"
	expect_message
	expect_match 'folder/out: cannot replace it: .*; remove .*/\.blinkreport-' \
		"$STDERR"
	[ "$(cat folder/out)" = old ] || fail "it was replaced"
}

# Another user of the folder guesses the name that the new file has for a while:
# exec keeps the number of the process.
case_output_is_no_ones_link()
{
	echo precious >other
	# shellcheck disable=SC2016 # for the other shell
	bash -c 'ln -s other "out.$$.new" && exec "$@"' bash \
		"$REPORT" -o out "$RECORD"
	[ "$(cat other)" = precious ] || fail "the link was written through"
	[ ! -L out ] || fail "the output is the link"
	ln -s loop loop
	expect_refused 3 '' -o loop "$RECORD"
	[ -L loop ] || fail "a link that leads nowhere is gone"
}

case_output_cannot_be_written()
{
	mkdir folder
	expect_refused 3 '' -o missing/out "$RECORD"
	expect_status 3 "$REPORT" "$RECORD" >/dev/full 2>err
	expect_one_line err
	expect_refused 3 '' -o folder "$RECORD"
	echo file >file
	expect_refused 3 '' --png=file "$RECORD"
	expect_folder . err file folder
}

# A picture of another user's where all may write stays as it is, too.
case_pictures_are_whole()
{
	"$REPORT" --svg=pictures "$RECORD" >out
	[ "$(find pictures -name '*.svg' -size +1k)" ] || fail "no pictures"
	cp -r pictures before
	expect_status 3 bash -c 'ulimit -f 8 && exec "$@"' bash \
		"$REPORT" --svg=pictures "$SLOWER" >out 2>err
	expect_match '^blinkreport: .*/[a-z-]*.svg: File too large$' err
	expect_one_line err
	diff -r before pictures || fail "the pictures are others"
	[ "$UID" = 0 ] || return 0
	chmod 1777 pictures
	chown 65533:65532 pictures/overview.svg
	expect_refused 3 '' --svg=pictures "$SLOWER"
	expect_same before/overview.svg pictures/overview.svg
}

case_reader_that_goes_away()
{
	"$REPORT" --format=csv "$RECORD" 2>err | head -n 1 >out || true
	expect_one_line out
	expect_empty err
}

case_still_running()
{
	cp -r "$RECORD" running
	head -n 17 "$RECORD/trials.jsonl" >running/trials.jsonl
	"$REPORT" running >out
	expect_match 'after 17 trials$' out
	printf '{"schema":"blinktrial' >>running/trials.jsonl
	"$REPORT" running >out
	expect_match 'was never finished' out
	: >running/trials.jsonl
	"$REPORT" running >out
	expect_match '^reference  *0  *0 ' out
}

# --- compare ------------------------------------------------------------------

case_compare()
{
	make_record again 2
	expect_status 0 "$REPORT" compare "$RECORD" again >out
	expect_match '^same: 6 of 6$' out
	expect_status 1 "$REPORT" compare "$RECORD" "$SLOWER" >out
	expect_match '^slower: 6 of 6$' out
	expect_match '^pagecache, reference .* slower$' out
	expect_status 6 "$REPORT" compare "$SLOWER" "$RECORD" >out
	expect_status 0 "$REPORT" compare --margin=6% "$RECORD" "$SLOWER" >out
	expect_status 7 "$REPORT" compare --margin=0 "$RECORD" again >out
	expect_match '^inconclusive: ' out
	[ "$(wc -L <out)" -le 100 ] || fail "wider than 100 columns"
}

case_compare_json()
{
	expect_status 1 "$REPORT" compare --json "$RECORD" "$SLOWER" >out
	expect_status 1 "$REPORT" compare --format=json -o file \
		"$RECORD" "$SLOWER"
	expect_same out file
	/usr/bin/python3 - <<-'END'
		import json
		found = json.load(open("out"))
		assert found["schema"] == "blinkreport-compare-1"
		assert found["status"] == 1
		assert len(found["pairs"]) == 6
	END
}

# --- refusals -----------------------------------------------------------------

case_no_record()
{
	mkdir empty
	expect_refused 3 '' missing
	expect_refused 3 '' empty
	expect_refused 3 '' /dev/null
	expect_refused 3 '' compare "$RECORD" missing
	expect_refused 3 '' --format=html -o page missing
	expect_folder . empty
}

case_damaged_record()
{
	local file

	for file in design.json environment.json trials.jsonl; do
		cp -r "$RECORD" broken
		sed -i '1s/{/[/' "broken/$file"
		expect_refused 3 "^broken/$file" broken
		rm -r broken
	done
}

# Nobody writes to the pipe.
case_record_of_pipes()
{
	local file

	for file in design.json environment.json trials.jsonl; do
		cp -R "$RECORD" "$file.d"
		rm "$file.d/$file"
		mkfifo "$file.d/$file"
		expect_status 3 timeout 20 "$REPORT" "$file.d" 2>err
		expect_one_line err
		expect_match "$file: is not a regular file" err
	done
}

case_usage()
{
	expect_refused 2 ''
	expect_refused 2 '' "" "$RECORD"
	expect_refused 2 '^record: is empty$' ""
	expect_refused 2 '' -o "" "$RECORD"
	expect_refused 2 '' --png= "$RECORD"
	expect_refused 2 '' "$RECORD" "$RECORD"
	expect_refused 2 '' --format=xml "$RECORD"
	expect_refused 2 '' --format
	expect_refused 2 '^--form=csv: no such option; is --format meant' \
		--form=csv "$RECORD"
	expect_refused 2 '^--fromat=csv: no such option; is --format meant' \
		--fromat=csv "$RECORD"
	expect_refused 2 '^compar: is compare meant' compar "$RECORD" "$RECORD"
	expect_refused 2 '' -x "$RECORD"
	expect_refused 2 '' -o
	expect_refused 2 '^--moon: no such option; see --help$' --moon \
		"$RECORD"
	expect_refused 2 '' compare
	expect_refused 2 '' compare "$RECORD"
	expect_refused 2 '' compare --margin=x "$RECORD" "$RECORD"
	expect_refused 2 '' compare --margin=-1 "$RECORD" "$RECORD"
	expect_refused 2 '' compare --margin=nan "$RECORD" "$RECORD"
	expect_refused 2 '' compare --format=csv "$RECORD" "$RECORD"
}

case_help()
{
	"$REPORT" --help >out 2>err
	expect_empty err
	expect_match '^Usage: blinkreport ' out
	"$REPORT" compare --help | expect_same out -
	"$REPORT" -h | expect_same out -
	[ "$("$REPORT" -V)" = "$("$REPORT" --version)" ] || fail "-V"
	"$REPORT" --version >out
	expect_one_line out
	expect_match '^blinkreport [^ ]+$' out
	expect_status 3 "$REPORT" --help >/dev/full 2>err
	expect_one_line err
}

case_module_missing()
{
	local program

	mkdir modules
	echo 'raise ModuleNotFoundError("no numpy", name="numpy")' \
		>modules/numpy.py
	for program in "$REPORT $RECORD" "$REPORT compare $RECORD $SLOWER"; do
		# shellcheck disable=SC2086 # words
		expect_status 5 env PYTHONPATH="$PWD/modules" \
			PYTHONDONTWRITEBYTECODE=1 $program >out 2>err
		expect_one_line err
		expect_match ': numpy: .* package python3-numpy' err
		expect_empty out
	done
}

# What others have set for programs of theirs, and what makes libraries talk.
case_foreign_environment()
{
	env MPLBACKEND=Qt4Agg HOME=/proc/1/fdinfo XDG_CONFIG_HOME=/proc/1/fdinfo \
		"$REPORT" --format=html -o page "$RECORD" 2>err ||
		fail "status $?: $(head -c 400 err)"
	expect_empty err
}

# A library that can't be mapped ends in one line, too, and nothing waits.
case_little_memory()
{
	local limit

	for limit in 30000 60000 100000; do
		# shellcheck disable=SC2016 # expanded by the inner shell
		expect_status 5 bash -c 'ulimit -v "$1" && exec timeout 60 "${@:2}"' \
			- "$limit" "$REPORT" "$RECORD" >out 2>err
		expect_one_line err
		expect_match '^blinkreport: memory: there is not enough$' err
		expect_empty out
	done
}

make_record "$RECORD" 1
make_record "$SLOWER" 3 1.03
check text case_text
check same_bytes_each_time case_same_bytes_each_time
check csv case_csv
check hyperfine case_hyperfine
check benchfmt case_benchfmt
check hlog case_hlog
check html_and_png case_html_and_png
check output_is_replaced_whole case_output_is_replaced_whole
check output_keeps_its_permissions case_output_keeps_its_permissions
: >attributes
if try chattr +a "$PWD/attributes" && try chattr -a "$PWD/attributes"; then
	check output_stays_beside_it case_output_stays_beside_it
else
	skip output_stays_beside_it "no file can be append-only here"
fi
check output_is_no_ones_link case_output_is_no_ones_link
check output_cannot_be_written case_output_cannot_be_written
check pictures_are_whole case_pictures_are_whole
check reader_that_goes_away case_reader_that_goes_away
check still_running case_still_running
check compare case_compare
check compare_json case_compare_json
check no_record case_no_record
check damaged_record case_damaged_record
check record_of_pipes case_record_of_pipes
check usage case_usage
check help case_help
check module_missing case_module_missing
check foreign_environment case_foreign_environment
check little_memory case_little_memory
finish
