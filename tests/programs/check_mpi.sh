#!/bin/bash
# check_mpi.sh - blinksort-mpi, from end to end, with each MPI that is here
#
# mpirun starts the ranks on this machine.  What comes out must be, byte for
# byte, what one process makes of the same input in rank order; or, where that
# shares too much code, what the reference makes of it.
#
# MPI_RANKS=N   sort with all numbers of ranks up to N, by rounds and by a grid,
#               instead of up to 8, and with some of them by a grid
# KILLS=N       end ranks at N moments by each signal, instead of at 6
# HUGE=1        sort messages of more than 2^31 bytes, too: takes 14 GB of the
#               folder of temporary files, and a minute
# MPI=NAME      only with this MPI

# shellcheck disable=SC2317 # cases are called by check
# shellcheck source=tests/programs/cluster_lib.sh
. "$(dirname "$0")/cluster_lib.sh"

if [ "$SANITIZED" = tsan ]; then
	skip mpi "ThreadSanitizer does not know what MPI does"
	finish
fi

read -r -a MPIS <<<"${MPI:-mpich openmpi}"
COUNT=20000 SMALL=3000
RANKS_MAX=${MPI_RANKS:-8}
# From one number of ranks to the next one
GRID_STEP=${MPI_RANKS:+1}
SOME_RANKS=(7 16 31)
HUGE=${HUGE:-}
KILL_TRIES=${KILLS:-6}
if [ -n "$QUICK$SANITIZED" ]; then
	COUNT=4000 SMALL=1000
	RANKS_MAX=${MPI_RANKS:-4}
	KILL_TRIES=${KILLS:-2}
fi
# All the numbers of ranks take a while where they are many for the CPUs.
[ "$RANKS_MAX" -ge 31 ] || SOME_RANKS=(7)
readonly SCHEDULES=(rounds grid)
# Where a rank is gone, for others' silence to end the run soon; a launcher
# mostly is faster.
readonly GONE_DEADLINE_S=5
# A launcher that is still there then is killed.
LAUNCHER_S=300
# Open MPI unloads plugins that leave memory: nothing tells then whose it was.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
# MPICH's UCX opens each network device that it has found, and MPI_Init fails if
# one is gone by then: other tests make some for a moment.
export UCX_NET_DEVICES=lo
declare -A MANY=([mpich]="" [openmpi]=--oversubscribe)

# mpi MPI RANKS COMMAND...: in the background if the caller says so; the job's
# status in $status, and what it prints in ./said and ./err
mpi()
{
	local mpi=$1 ranks=$2
	shift 2

	status=0
	# shellcheck disable=SC2086 # none, or one word
	timeout --kill-after=1 "$LAUNCHER_S" "mpirun.$mpi" ${MANY[$mpi]} -n "$ranks" "$@" \
		>said 2>err </dev/null || status=$?
}

# mpi_sort MPI RANKS OPTION...
mpi_sort()
{
	local mpi=$1 ranks=$2
	shift 2

	mpi "$mpi" "$ranks" "$(mpi_program "$mpi")" in.%r -o out.%r \
		--deadline="$DEADLINE_S" "$@"
}

expect_sorted_by_all()
{
	[ "$status" = 0 ] || fail "status $status: $*: $(head -c 2000 err)"
}

# expect_mpi MPI RANKS OPTION...: ./want is what comes out
expect_mpi()
{
	mpi_sort "$@"
	expect_sorted_by_all "$@"
	expect_whole "$2" want || fail "$*"
	rm -f out.*
}

# expect_mpi_by SCHEDULE MPI RANKS OPTION...: the same, and ranks say that they
# have gone by this schedule.  Open MPI cuts a line of more than 4 KiB in two.
expect_mpi_by()
{
	expect_mpi "${@:2}" --schedule="$1" --json
	expect_match "\"schedule\": \"${1%%=*}\"" said
}

# expect_mpi_by_all MPI RANKS OPTION...
expect_mpi_by_all()
{
	local schedule

	for schedule in "${SCHEDULES[@]}"; do
		expect_mpi_by "$schedule" "$@"
	done
}

# --- what comes out -----------------------------------------------------------

# case_ranks MPI SCHEDULE STEP: all numbers of ranks, or each STEPth
case_ranks()
{
	local ranks

	"$BIN/blinkgen" -a "$COUNT" whole
	expect_sorted whole -o want
	for ((ranks = 1; ranks <= RANKS_MAX; ranks += $3)); do
		cut_input whole 100 "$ranks" even
		expect_mpi_by "$2" "$1" "$ranks"
	done
}

# expect_no_schedule MPI RANKS SCHEDULE WHY
expect_no_schedule()
{
	mpi_sort "$1" "$2" --schedule="$3"
	[ "$status" != 0 ] || fail "status 0"
	expect_match "^blinksort-mpi: (rank . .*: )?--schedule: $4" err
	expect_none
}

# case_schedules MPI: sides of a grid, one with a row that is not full, and what
# cannot be
case_schedules()
{
	local ranks

	"$BIN/blinkgen" -a "$COUNT" whole
	expect_sorted whole -o want
	for ranks in 7 8; do
		cut_input whole 100 "$ranks" random
		expect_mpi_by grid=2x4 "$1" "$ranks"
		# Compressed records go the same ways.
		expect_mpi_by grid=2x4 "$1" "$ranks" --compress=lz4
		expect_mpi_by rounds "$1" "$ranks" --compress=zstd
	done
	cut_input whole 100 4 even
	expect_no_schedule "$1" 4 grid=2x4 "a grid of 2x4 has no place "
	expect_no_schedule "$1" 4 all-at-once "all-at-once only with"
	[ "$status" = 2 ] || fail "status $status: $(head -c 2000 err)"
}

# case_long MPI: rank 0 sends half of 4.6 GB to rank 1, with offsets of more than
# 31 bits
case_long()
{
	local described=(--record-size=4096 --key=0:8)

	"$BIN/blinkgen" -a 45875200 in.0
	: >in.1
	"$BIN/blinksort" in.0 -o want "${described[@]}"
	expect_mpi "$1" 2 "${described[@]}"
}

# case_shape MPI RANKS SHAPE: many equal keys show whether ranks keep their order
case_shape()
{
	make_shape "$3" "$SMALL" "$SEED" >whole
	sort_reference whole -o want
	cut_input whole 100 "$2" random
	expect_mpi_by_all "$1" "$2"
}

# case_few MPI RANKS: ranks without records, and one that has all
case_few()
{
	local count how

	for count in 0 1 4 "$SMALL"; do
		"$BIN/blinkgen" -a "$count" whole
		sort_reference whole -o want
		for how in first last; do
			cut_input whole 100 "$2" "$how"
			expect_mpi_by_all "$1" "$2"
		done
	done
}

# case_records MPI RANKS SIZE KEY COUNT
case_records()
{
	local described=(--record-size="$3" --key="$4")

	make_shape zipf "$5" "$SEED" "${described[@]}" >whole
	sort_reference whole -o want "${described[@]}"
	cut_input whole "$3" "$2" random
	expect_mpi_by_all "$1" "$2" "${described[@]}"
}

# case_chunks MPI BYTES WINDOW: records and counts lie across the borders of
# chunks, and heads of messages are longer than a chunk
case_chunks()
{
	local ranks

	export BLINK_MPI_CHUNK_BYTES=$2 BLINK_MPI_WINDOW=$3
	"$BIN/blinkgen" "$COUNT" whole
	expect_sorted whole -o want
	for ranks in 2 5; do
		cut_input whole 100 "$ranks" random
		expect_mpi "$1" "$ranks"
	done
	make_shape few-distinct "$COUNT" "$SEED" >whole
	sort_reference whole -o want
	cut_input whole 100 3 random
	expect_mpi_by_all "$1" 3
}

# Ranks that cut messages in other ways would not understand each other.
case_chunks_differ()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	cut_input whole 100 2 even
	status=0
	# shellcheck disable=SC2086,SC2016 # none or one word; that shell's
	timeout 100 "mpirun.$1" ${MANY[$1]} -n 2 sh -c \
		'BLINK_MPI_CHUNK_BYTES=$((4096 << ${PMI_RANK:-$OMPI_COMM_WORLD_RANK})) \
			exec "$@"' sh "$(mpi_program "$1")" in.%r -o out.%r \
		>said 2>err </dev/null || status=$?
	[ "$status" != 0 ] || fail "status 0"
	expect_match 'rank . .*sends chunks of .* bytes, but rank . of ' err
	expect_none
}

# case_beyond_memory MPI: by way of scratch files, into files of their own and
# into one
case_beyond_memory()
{
	"$BIN/blinkgen" -a 400000 whole
	expect_sorted whole -o want
	cut_input whole 100 2 even
	mkdir tmp.0 tmp.1
	expect_mpi "$1" 2 -S 12M -T tmp.%r
	mpi "$1" 2 "$(mpi_program "$1")" in.%r --gather=out.all -S 12M \
		--deadline="$DEADLINE_S"
	expect_sorted_by_all "$1"
	expect_same out.all want
}

case_gather()
{
	"$BIN/blinkgen" -a "$COUNT" whole
	expect_sorted whole -o want
	cut_input whole 100 3 random
	mpi "$1" 3 "$(mpi_program "$1")" in.%r --gather=out.all \
		--deadline="$DEADLINE_S"
	expect_sorted_by_all "$1"
	echo out.all | expect_outputs
	expect_same out.all want
	rm out.all
	expect_mpi "$1" 3 --by-reference=yes
	expect_mpi "$1" 3 --unique
	expect_mpi "$1" 3 --trace=trace.%r
	expect_match '"rank 2 ' trace.0
}

# --- what is told -------------------------------------------------------------

case_json()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	expect_sorted whole -o want
	cut_input whole 100 2 even
	mpi_sort "$1" 2 --json --checksum
	expect_sorted_by_all "$1"
	/usr/bin/python3 "$REPO/tests/programs/json_documents.py" \
		blinksort-sort-1 said
	python3 - "$SMALL" <<-'END'
		import json, sys
		ranks = [json.loads(line) for line in open("said")]
		assert sorted(one["rank"] for one in ranks) == [0, 1]
		for one in ranks:
		    assert one["transport"] == "mpi", one["transport"]
		    assert "MPI" in one["mpi_library"], one["mpi_library"]
		    assert one["mpi_init_ns"] > 0 and one["mpi_finalize_ns"] > 0
		    assert one["schedule"] == "rounds", one["schedule"]
		first = next(one for one in ranks if one["rank"] == 0)
		assert first["whole_records"] == int(sys.argv[1])
		assert len(first["ranks"]) == 2
		for one in first["ranks"]:
		    assert one["sent_bytes"] > 0 and one["received_bytes"] > 0
		    assert one["clock_bound_ns"] == 0
	END
	# Without MPI
	rm out.*
	mpi "$1" 2 "$BIN/blinksort" --cluster in.%r -o out.%r --json \
		--deadline="$DEADLINE_S" --job="$SCRATCH.$1"
	expect_sorted_by_all "$1"
	expect_match '"transport": "udp".*"mpi_library": null, "mpi_init_ns": null, "mpi_finalize_ns": null' said
}

case_version()
{
	"$(mpi_program "$1")" --version >version
	expect_match '^blinksort-mpi ' version
	case $1 in
	mpich) expect_match '^MPICH Version' version ;;
	openmpi) expect_match '^Open MPI v' version ;;
	esac
	[ "$(wc -l <version)" = 2 ] || fail "$(cat version)"
}

# The plain program becomes the other one, which lies beside it.
case_transport()
{
	mkdir bin
	cp "$BIN/blinksort" bin
	"$BIN/blinkgen" -a "$SMALL" whole
	expect_sorted whole -o want
	cut_input whole 100 2 even
	expect_status 2 bin/blinksort --transport=mpi in.0 -o out.0 2>err
	echo "blinksort: --transport=mpi: no blinksort-mpi beside this program:\
 make mpi builds it" | expect_same - err
	cp "$(mpi_program "$1")" bin/blinksort-mpi
	mpi "$1" 2 bin/blinksort in.%r --transport=mpi -o out.%r --json
	expect_sorted_by_all "$1"
	expect_whole 2 want
	expect_match '"transport": "mpi"' said
	# It also has the other transport.
	rm out.*
	mpi "$1" 2 bin/blinksort-mpi --cluster --transport=udp in.%r -o out.%r \
		--json --job="$SCRATCH.$1" --deadline="$DEADLINE_S"
	expect_sorted_by_all "$1"
	expect_whole 2 want
	expect_match '"transport": "udp"' said
}

# case_alone MPI OTHER: started by another MPI's launcher, each process is rank 0
# of 1.  None may sort its own part.
case_alone()
{
	# Two processes of Open MPI that make or remove its folder at once fail by
	# that.  It removes none that is not empty.
	local -x OMPI_MCA_orte_tmpdir_base=$SCRATCH/ompi
	local folder

	folder=$SCRATCH/ompi/ompi.$(uname -n).$UID
	mkdir -p "$folder"
	chmod 700 "$folder"
	touch "$folder/stays"
	"$BIN/blinkgen" -a "$SMALL" whole
	cut_input whole 100 2 even
	mpi "$2" 2 "$(mpi_program "$1")" in.%r -o out.%r
	[ "$status" = 2 ] || fail "status $status: $(cat err)"
	expect_match '^blinksort-mpi: [A-Z_]+: this is rank . of 2, but to MPI it is alone: start it by the mpirun of' err
	SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=4 expect_status 2 \
		"$(mpi_program "$1")" in.%r -o out.%r 2>err
	expect_match 'give srun --mpi=pmix or --mpi=pmi2' err
	expect_none
}

# --- failures -----------------------------------------------------------------

# expect_named RANKS PATTERN: each rank has said why in one line
expect_named()
{
	local count

	[ "$status" != 0 ] || fail "status 0"
	count=$(grep -c -E "^blinksort-mpi: $2" err) || true
	[ "$count" = "$1" ] || fail "not $1 ranks: $(cat err)"
	expect_none
}

case_input_missing()
{
	local rank

	"$BIN/blinkgen" -a "$SMALL" whole
	cut_input whole 100 4 even
	for rank in 0 2; do
		mv "in.$rank" kept
		mpi_sort "$1" 4
		expect_named 4 "(rank $rank \\(.*\\): )?in.$rank: cannot open"
		mv kept "in.$rank"
	done
}

# The two ranks differ in an option: each says so.  Both have one command: of several
# the mpirun of Debian 13, of Open MPI 5.0.7, dies.
case_options_differ()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	cut_input whole 100 2 even
	# shellcheck disable=SC2016 # for that shell
	mpi "$1" 2 sh -c 'exec "$0" in.%r -o out.%r \
		--key=0:$((10 - ${PMI_RANK:-$OMPI_COMM_WORLD_RANK}))' \
		"$(mpi_program "$1")"
	expect_named 2 '(rank . .*: )?rank . .* has another --key than rank .'
}

expect_full()
{
	mpi "$@"
	[ "$status" != 0 ] || fail "status 0"
	expect_match '^blinksort-mpi: (d|tmp).1' err
	expect_match '^blinksort-mpi: rank 1 ' err
	[ -z "$(find d.* -mindepth 1)" ] || fail "there is $(find d.*)"
}

case_full()
{
	local program

	program=$(mpi_program "$1")
	"$BIN/blinkgen" -a 400000 whole
	cut_input whole 100 2 even
	mkdir d.0 d.1 tmp.0 tmp.1
	on_small_disk d.1 expect_full "$1" 2 "$program" in.%r -o d.%r/out
	on_small_disk tmp.1 expect_full "$1" 2 "$program" in.%r -o d.%r/out \
		-S 12M -T tmp.%r
}

# start_sort MPI RANKS OPTION...: in the background, as $job; rank r has the
# process in pid.r
start_sort()
{
	local mpi=$1 ranks=$2
	shift 2

	rm -f pid.* ended
	# shellcheck disable=SC2016 # that shell's
	mpi_sort_by_shell='echo $$ >pid.${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; exec "$@"'
	(
		LAUNCHER_S=$((GONE_DEADLINE_S + 10))
		mpi "$mpi" "$ranks" sh -c "$mpi_sort_by_shell" sh \
			"$(mpi_program "$mpi")" "$@" --deadline="$GONE_DEADLINE_S"
		echo "$status" >ended
	) &
	job=$!
}

# have_ended: no process of pid.0 ... runs
have_ended()
{
	local file pid state

	for file in pid.*; do
		pid=$(cat "$file")
		[ -n "$pid" ] || continue
		state=$(ps -o stat= -p "$pid") || continue
		[[ $state = Z* ]] || return 1
	done
}

# end_sort BEGIN_S: its ranks end soon; its status in $status.  Now and then Open
# MPI's launcher waits for a lock of its own for ever, in pmix_rte_finalize(),
# when all ranks have ended.
end_sort()
{
	local took_s

	wait_until have_ended
	took_s=$((SECONDS - $1))
	[ "$took_s" -le $((GONE_DEADLINE_S + 20)) ] || fail "took $took_s s"
	wait "$job"
	status=$(cat ended)
}

# time_sort MPI RANKS OPTION...: from when rank 1 is there to the end, in $took_ms
time_sort()
{
	local begin_ns

	start_sort "$@"
	wait_until test -s pid.1
	begin_ns=$(date +%s%N)
	wait "$job"
	took_ms=$((($(date +%s%N) - begin_ns) / 1000000))
	[ "$(cat ended)" = 0 ] || fail "status $(cat ended): $(cat err)"
}

# case_killed MPI SIGNAL: at any moment; then there are all outputs or none
case_killed()
{
	local i begin_s outcome took_ms
	local -A outcomes=([all]=0 [some]=0 [none]=0)

	"$BIN/blinkgen" -a "$COUNT" whole
	expect_sorted whole -o want
	cut_input whole 100 3 even
	time_sort "$1" 3 in.%r -o out.%r
	rm out.*
	for ((i = 0; i < KILL_TRIES; i++)); do
		begin_s=$SECONDS
		start_sort "$1" 3 in.%r -o out.%r
		wait_until test -s pid.1
		random_below "$took_ms"
		nap_ms "$random"
		kill -"$2" "$(cat pid.1)" 2>/dev/null || true
		end_sort "$begin_s"
		expect_all_or_none 3
		outcomes[$outcome]=$((outcomes[$outcome] + 1))
		rm -f out.*
	done
	echo "  $1 $2 within $took_ms ms: of $KILL_TRIES jobs" \
		"${outcomes[none]} ended without an output and" \
		"${outcomes[some]} with some"
	expect_rare "${outcomes[some]}" "$KILL_TRIES"
}

# is_through: all ranks have sorted, or wait for each other in MPI_Finalize, which
# cannot tell which rank does not come.
is_through()
{
	[ "$status" = 0 ] || grep -q 'MPI_Finalize does not end' err
}

# case_silent MPI: the others name a rank that does not go on, and end.  The
# launcher cannot know.
case_silent()
{
	local i begin_s

	"$BIN/blinkgen" -a 400000 whole
	cut_input whole 100 3 even
	for ((i = 0; i < 10; i++)); do
		begin_s=$SECONDS
		start_sort "$1" 3 in.%r -o out.%r
		wait_until test -s pid.1
		await_open 1 in.1 || true
		kill -STOP "$(cat pid.1)" 2>/dev/null || true
		end_sort "$begin_s"
		kill -KILL "$(cat pid.1)" 2>/dev/null || true
		is_through || break
		rm -f out.*
	done
	! is_through || fail "the rank was through each time"
	expect_match '^blinksort-mpi: rank 1 .*(has been silent for|has not come within) 5.0 s' err
	expect_none
}

# case_lie MPI LIE: rank 1 sends a note that no honest rank sends, and the others
# say so.
case_lie()
{
	"$BIN/blinkgen" -a "$SMALL" whole
	cut_input whole 100 3 even
	# shellcheck disable=SC2016 # that shell's
	mpi "$1" 3 sh -c '[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" != 1 ] ||
			export LD_PRELOAD="$0"
		exec "$@"' "$BUILD/lying_note.so" env LIE="$2" \
		"$(mpi_program "$1")" in.%r -o out.%r --deadline="$DEADLINE_S"
	[ "$status" != 0 ] || fail "status 0"
	expect_match 'rank 1 .*sent an impossible message: it is faulty or of another version' err
	expect_none
}

# case_init MPI: MPI_Init waits for a rank that does not come.  Not every launcher
# kills one that is stopped.
case_init()
{
	local begin_s=$SECONDS

	"$BIN/blinkgen" -a "$SMALL" whole
	cut_input whole 100 2 even
	# shellcheck disable=SC2016 # that shell's
	(
		mpi "$1" 2 sh -c '[ "${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" = 0 ] || {
				echo $$ >pid.1
				kill -STOP $$
			}
			exec "$@"' sh "$(mpi_program "$1")" in.%r -o out.%r \
			--deadline=1
		echo "$status" >ended
	) &
	job=$!
	wait_until grep -q 'MPI_Init' err
	kill -KILL "$(cat pid.1)" 2>/dev/null || true
	end_sort "$begin_s"
	[ "$status" != 0 ] || fail "status 0"
	expect_match '^blinksort-mpi: MPI_Init: not all ranks have come within 13 s' err
	expect_none
}

for mpi in "${MPIS[@]}"; do
	other=$([ "$mpi" = mpich ] && echo openmpi || echo mpich)
	check_able "$mpi" "${mpi}_ranks" case_ranks "$mpi" rounds 1
	check_able "$mpi" "${mpi}_grid_ranks" case_ranks "$mpi" grid \
		"${GRID_STEP:-3}"
	check_able "$mpi" "${mpi}_schedules" case_schedules "$mpi"
	for ranks in "${SOME_RANKS[@]}"; do
		for shape in zipf all-equal; do
			check_able "$mpi" "${mpi}_${shape}_$ranks" case_shape \
				"$mpi" "$ranks" "$shape"
		done
		check_able "$mpi" "${mpi}_records_1_$ranks" case_records "$mpi" \
			"$ranks" 1 0:1 "$SMALL"
		check_able "$mpi" "${mpi}_records_16_$ranks" case_records \
			"$mpi" "$ranks" 16 8:8 "$SMALL"
		check_able "$mpi" "${mpi}_records_4096_$ranks" case_records \
			"$mpi" "$ranks" 4096 4000:10 "$((SMALL / 4))"
	done
	[ -z "$HUGE" ] || check_able "$mpi" "${mpi}_long" case_long "$mpi"
	for ranks in 4 "${SOME_RANKS[@]}"; do
		check_able "$mpi" "${mpi}_few_$ranks" case_few "$mpi" "$ranks"
	done
	check_able "$mpi" "${mpi}_chunks_4096_1" case_chunks "$mpi" 4096 1
	check_able "$mpi" "${mpi}_chunks_777_3" case_chunks "$mpi" 777 3
	check_able "$mpi" "${mpi}_chunks_differ" case_chunks_differ "$mpi"
	check_able "$mpi" "${mpi}_beyond_memory" case_beyond_memory "$mpi"
	check_able "$mpi" "${mpi}_gather" case_gather "$mpi"
	check_able "$mpi" "${mpi}_json" case_json "$mpi"
	check_able "$mpi" "${mpi}_version" case_version "$mpi"
	check_able "$mpi" "${mpi}_init" case_init "$mpi"
	check_able "$mpi" "${mpi}_transport" case_transport "$mpi"
	check_able "$mpi,$other" "${mpi}_alone" case_alone "$mpi" "$other"
	check_able "$mpi" "${mpi}_input_missing" case_input_missing "$mpi"
	check_able "$mpi" "${mpi}_options_differ" case_options_differ "$mpi"
	check_able "$mpi,mount" "${mpi}_full" case_full "$mpi"
	check_able "$mpi" "${mpi}_killed" case_killed "$mpi" KILL
	check_able "$mpi" "${mpi}_terminated" case_killed "$mpi" TERM
	check_able "$mpi" "${mpi}_silent" case_silent "$mpi"
	for lie in delay again; do
		if [ -n "$SANITIZED" ]; then
			skip "${mpi}_lie_$lie" "no library comes before a sanitizer's"
		else
			check_able "$mpi" "${mpi}_lie_$lie" case_lie "$mpi" "$lie"
		fi
	done
done

finish
