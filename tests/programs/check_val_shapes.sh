#!/bin/bash
# check_val_shapes.sh - blinkval on records of any shape, and its gates: --unique
# and --against

# shellcheck disable=SC2317 # cases are called by check
# shellcheck disable=SC2002 # "cat FILE |" makes a pipe of a file
. "$(dirname "$0")/val_lib.sh"

# --- records of any shape -------------------------------------------------------

# What Python's numbers say about the same records
case_any_shape()
{
	python3 "$REPO/tests/programs/val_shapes.py" "$VAL" \
		$((QUICK ? 20 : 100)) "${SEED:-$$}"
}

# pairs FROM TO...: records of two u64, little endian, on stdout
pairs()
{
	python3 -c 'import struct, sys
for number in sys.argv[1:]:
    sys.stdout.buffer.write(struct.pack("<Q", int(number)))' "$@"
}

case_edges()
{
	local keys=(--record-size=16 --key=0:u64 --key=8:u64:desc)

	pairs 256 7 1 9 1 300 256 7 >input
	pairs 1 300 1 9 256 7 256 7 >sorted
	expect_report 0 sorted "${keys[@]}" --against input <<-'END'
		Records: 4
		Checksum: 167259ba0
		Input records: 4
		Input checksum: 167259ba0
		Duplicate keys: 1
		SUCCESS - all records are in order
	END
	expect_report 1 sorted "${keys[@]}" --unique <<-'END'
		Records: 4
		Checksum: 167259ba0
		Duplicate keys: 1
		ERROR - there are 1 duplicate keys
	END
	expect_report 1 input -r "${keys[@]}" --unique <<-'END'
		First unordered record is record 3
		Records: 4
		Checksum: 167259ba0
		ERROR - there are 1 unordered records
	END
	expect_report 1 -q input "${keys[@]}" </dev/null
	expect_report 1 -q input "${keys[0]}" </dev/null
	expect_report 1 -q sorted "${keys[@]}" --unique </dev/null
	expect_report 0 -q sorted "${keys[@]}" --against input </dev/null
	# By the first number alone, and with the last record cut.
	pairs 1 9 1 300 256 7 >f
	expect_status 0 "$VAL" --record-size=16 --key=0:u64 f 2>err
	expect_match '^Duplicate keys: 1$' err
	head -c 47 f >g
	expect_report 1 "${keys[@]}" g <<-'END'
		First unordered record is record 1
		partial record found at end
	END
}

# Without a key, the first bytes count; of a short record, all.
case_other_sizes()
{
	local size

	for size in 1 7 10 11 99; do
		{
			head -c "$size" /dev/zero
			head -c "$size" /dev/zero | tr '\0' '\1'
		} >f
		expect_status 0 "$VAL" --record-size="$size" f 2>err
		expect_match '^Records: 2$' err
		expect_match '^Duplicate keys: 0$' err
		expect_status 1 "$VAL" --record-size="$size" -r f 2>err
		expect_match '^First unordered record is record 1$' err
	done
}

# Records of any size by standard input, at the end of which one is cut
case_stdin_shapes()
{
	local bytes size status

	head -c 20000000 /dev/urandom >random
	for size in 1 7 16 4096 1000003 16777216; do
		for bytes in 20000000 $((20000000 / size * size)); do
			head -c "$bytes" random >f
			status=0
			"$VAL" "--record-size=$size" --key=0:1 f 2>report ||
				status=$?
			cat f | expect_status "$status" "$VAL" -t3 \
				"--record-size=$size" --key=0:1 - 2>err
			expect_same report err
		done
	done
}

# The largest record: a piece is one, and a part's border is between two.
case_largest_records()
{
	local size=$((16 << 20))

	truncate -s $((3 * size)) f
	printf '\1' | dd of=f bs=1 seek=$((3 * size - 1)) conv=notrunc status=none
	expect_status 1 "$VAL" -t2 --record-size="$size" --key=0:"$size" f f 2>err
	expect_match '^First unordered record is record 3$' err
	expect_match '^Records: 6$' err
	expect_match '^ERROR - there are 1 unordered records$' err
}

# --- --unique and --against -----------------------------------------------------

case_unique()
{
	sorted 5000 >f
	expect_report 0 --unique f <<-'END'
		Records: 5000
		Checksum: 9cd3d5adb67
		Duplicate keys: 0
		SUCCESS - all records are in order
	END
	# Also over the border of two parts, and together with the other error.
	records 4999 1 <f >last
	expect_report 1 --unique f last <<-'END'
		Records: 5001
		Checksum: 9ce0533b666
		Duplicate keys: 1
		ERROR - there are 1 duplicate keys
	END
	expect_status 1 "$VAL" --unique f last f 2>err
	tail -n 2 err >errors
	expect_same errors - <<-'END'
		ERROR - there are 1 unordered records
		ERROR - there are 1 duplicate keys
	END
	expect_status 0 "$VAL" f last 2>err
	# Summaries have what it takes.
	expect_status 1 "$VAL" -q --unique -o summary f last
	expect_status 0 "$VAL" -q -s summary
	expect_status 1 "$VAL" -q -s --unique summary
}

case_against()
{
	local threads

	"$GEN" -a 50000 input
	sort input >f
	records 0 20000 <input >a
	records 20000 30000 <input >b
	: >empty
	"$VAL" f 2>report
	for threads in 1 3; do
		expect_status 0 "$VAL" "-t$threads" f --against=input 2>one
		expect_status 0 "$VAL" "-t$threads" --against b f --against a \
			--against empty 2>err
		expect_same one err
		expect_status 0 "$VAL" "-t$threads" --against <(cat a) f \
			--against=/dev/stdin <b 2>err
		expect_same one err
	done
	grep -v '^Input ' one | expect_same report -
	expect_match '^Input records: 50000$' one
	# An output in parts, with its summary
	"$VAL" -q -o whole f
	expect_status 0 "$VAL" -q -o summary --against=a --against=b \
		<(records 0 100 <f) <(records 100 49900 <f)
	expect_same whole summary
}

case_against_others()
{
	sorted 100 >f
	records 0 99 <f >fewer
	{ cat fewer; records 0 1 <f; } >other
	expect_report 1 f --against fewer <<-'END'
		Records: 100
		Checksum: 2f987241eb
		Input records: 99
		Input checksum: 2e98e2c199
		Duplicate keys: 0
		ERROR - there are 100 records, but 99 in the input
		blinkval: give --against once for each file of the input
	END
	# An output of --unique has fewer records, none twice.
	expect_status 1 "$VAL" fewer --against f 2>err
	tail -n 2 err | expect_same - <(cat <<-'END'
		ERROR - there are 99 records, but 100 in the input
		blinkval: --against is not for an output from which --unique has dropped records
	END
	)
	{ records 0 1 <f; records 0 98 <f; } >twice
	expect_status 1 "$VAL" twice --against f 2>err
	tail -n 1 err | expect_same - \
		<(echo 'ERROR - there are 99 records, but 100 in the input')
	expect_report 1 f --against other <<-'END'
		Records: 100
		Checksum: 2f987241eb
		Input records: 100
		Input checksum: 2f36e3e773
		Duplicate keys: 0
		ERROR - the checksum is 2f987241eb, but 2f36e3e773 of the input
	END
	expect_report 1 -q f --against other </dev/null
	# The CRC-32 of this record is 0.
	printf '\235\012\331\155' >one
	cat one one >two
	expect_report 1 --record-size=4 two --against one <<-'END'
		Records: 2
		Checksum: 0
		Input records: 1
		Input checksum: 0
		Duplicate keys: 1
		ERROR - there are 2 records, but 1 in the input
		blinkval: give --against once for each file of the input
	END
	# All errors are told.
	{ cat f; records 99 1 <f; records 0 1 <f; } >g
	expect_status 1 "$VAL" --unique g --against f 2>err
	tail -n 4 err >errors
	expect_same errors - <<-'END'
		ERROR - there are 1 unordered records
		ERROR - there are 1 duplicate keys
		ERROR - there are 102 records, but 100 in the input
		blinkval: give --against once for each file of the input
	END
}

case_against_fragments()
{
	sorted 100 >f
	head -c 9950 f >g
	expect_report 1 f --against g <<-'END'
		blinkval: g: partial record found at end
	END
	expect_report 1 g --against f <<-'END'
		blinkval: g: partial record found at end
	END
	mkfifo pipe
	cat g >pipe &
	expect_report 1 -q f --against=f --against pipe <<-'END'
		blinkval: pipe: partial record found at end
	END
}

# The output of no records is no records.
case_against_nothing()
{
	sorted 100 >f
	: >empty
	expect_report 0 empty --against empty <<-'END'
		Records: 0
		Checksum: 0
		Input records: 0
		Input checksum: 0
		Duplicate keys: 0
		SUCCESS - all records are in order
	END
	expect_status 1 "$VAL" empty --against f 2>err
	tail -n 1 err | expect_same - \
		<(echo 'ERROR - there are 0 records, but 100 in the input')
	expect_report 1 empty --against empty -o summary \
		<<<'there must be at least one record to be validated'
	expect_gone summary
	expect_refused 3 '^missing: No such file or directory$' f --against \
		missing
}

# --- --head ---------------------------------------------------------------------

# checksum_of FILE
checksum_of()
{
	"$VAL" "$1" 2>&1 | sed -n 's/^Checksum: //p'
}

# wrong_head MESSAGE: of the first 5000 records, "few" is another one
wrong_head()
{
	local threads

	for threads in 1 3; do
		expect_status 1 "$VAL" "-t$threads" few --head=5000 \
			--against input 2>err
		tail -n 1 err | expect_same - <(echo "ERROR - $1")
	done
	expect_report 1 -q few --head=5000 --against input </dev/null
}

case_head()
{
	local n threads

	"$GEN" -a 20000 input
	sort input >f
	records 0 7000 <input >a
	records 7000 13000 <input >b
	: >empty
	for n in 1 4096 4097 19999 20000 30000; do
		records 0 "$n" <f >few
		records 0 $((n / 2)) <few >first
		records $((n / 2)) "$n" <few >second
		for threads in 1 3; do
			expect_status 0 "$VAL" "-t$threads" few --head="$n" \
				--against input 2>err
			sed -n 's/^Input r/R/p; s/^Input c/C/p' err >inputs
			expect_same <(head -n 2 err) inputs
			expect_status 0 "$VAL" -q "-t$threads" <(cat first) \
				second empty --head="$n" --against a \
				--against <(cat b)
		done
	done
	expect_report 0 few --head=20000 <<-END
		$("$VAL" few 2>&1)
	END
	cat few | expect_status 0 "$VAL" -q - --head=20000
	expect_report 1 few --head=19999 <<-END
		$("$VAL" few 2>&1 | sed '$d')
		ERROR - there are 20000 records, but --head=19999
	END
	expect_status 0 "$VAL" -q empty --head=5 --against empty
	expect_status 1 "$VAL" empty --head=5 --against input 2>err
	tail -n 1 err | expect_same - \
		<(echo "ERROR - there are 0 records, but 5 in the input")
}

case_head_wrong()
{
	"$GEN" -a 20000 input
	sort input >f
	# One is missing: the next one has its place, or the first one another time.
	{ records 0 2500 <f; records 2501 2500 <f; } >few
	wrong_head "there are 5000 records, but 5001 in the input"
	{ records 0 1 <f; records 0 2500 <f; records 2501 2499 <f; } >few
	wrong_head "the checksum is $(checksum_of few), but\
 $(checksum_of <(records 0 5000 <f)) of the input"
	# The last one is missing, or is the wrong one.
	records 0 4999 <f >few
	wrong_head "there are 4999 records, but 5000 in the input"
	{ records 0 4999 <f; records 5000 1 <f; } >few
	wrong_head "there are 5000 records, but 5001 in the input"
	{ records 0 4999 <f; records 4998 1 <f; } >few
	wrong_head "there are 5000 records, but 4999 in the input"
	records 0 5001 <f >few
	wrong_head "there are 5001 records, but 5000 in the input"
	# All of them, but not in order
	{ records 1 4998 <f; records 0 1 <f; records 4999 1 <f; } >few
	wrong_head "there are 1 unordered records"
	# The data of one is another.
	records 0 5000 <f >few
	printf x | dd of=few bs=1 seek=123450 conv=notrunc status=none
	wrong_head "the checksum is $(checksum_of few), but\
 $(checksum_of <(records 0 5000 <f)) of the input"
}

# Of equal keys, only their number can be wrong, unless all are there.
case_head_equal()
{
	local keys=(--record-size=8 --key=0:1)

	printf '%s' b1234567 a1234567 b2345678 c1234567 b3456789 >input
	printf '%s' a1234567 b1234567 b2345678 >few
	expect_status 0 "$VAL" -q few "${keys[@]}" --head=3 --against input
	printf '%s' a1234567 b1234567 b2345678 b3456789 >few
	expect_status 0 "$VAL" -q few "${keys[@]}" --head=4 --against input
	printf '%s' a1234567 b1234567 b2345678 b2345678 >few
	expect_report 1 -q few "${keys[@]}" --head=4 --against input </dev/null
	printf '%s' a1234567 b1234567 b2345678 b2345678 b3456789 >few
	expect_report 1 -q few "${keys[@]}" --head=5 --against input </dev/null
	printf '%s' c1234567 b1234567 b2345678 >few
	expect_status 0 "$VAL" -qr few "${keys[@]}" --head=3 --against input
	expect_report 1 -q few "${keys[@]}" --head=3 --against input </dev/null
}

case_head_refused()
{
	sorted 100 >f
	expect_refused 2 'fd/[0-9]+: is a stream: with --head and --against' \
		<(cat f) --head=5 --against f
	cat f | expect_refused 2 '^standard input: is a stream' f - --head=5 \
		--against f
	expect_refused 2 '^--head: not together with --unique and --against' \
		f --head=5 --unique --against f
	expect_refused 2 '^--head=0: not a number from 1' f --head=0
	expect_status 0 "$VAL" -q f --head=100 --unique
}

check any_shape case_any_shape
check edges case_edges
check other_sizes case_other_sizes
check stdin_shapes case_stdin_shapes
check largest_records case_largest_records
check unique case_unique
check against case_against
check against_others case_against_others
check against_fragments case_against_fragments
check against_nothing case_against_nothing
check head case_head
check head_wrong case_head_wrong
check head_equal case_head_equal
check head_refused case_head_refused
finish
