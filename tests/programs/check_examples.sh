#!/bin/bash
# check_examples.sh - the examples of all man pages, as a reader pastes them
#
# The examples of a page are run from top to bottom, in one shell and in a folder
# of their own, with these differences only:
#
#   - fewer trials, and blinktrial characterise --quick: for the time it takes
#   - blinktune sees a copied machine in place of /sys and /proc
#   - the files that the examples read and do not make are made before
#   - 127.0.0.2 and 127.0.0.3 are other addresses of this machine, so that two of
#     these scripts may run at a time
#
# page_examples.py says how a page marks an example that cannot be run by any user
# on one machine; there must be no other that is not run.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

if [ "${VARIANT:-dyn}" != dyn ]; then
	skip examples "a reader has the plain build"
	finish
fi

readonly RUNS=$REPO/results/runs
readonly PAGES=("$REPO"/{src/programs/*,shell,tune,results}/*.[157])
# The examples of a page take less; the limit ends what hangs.
readonly LIMIT_S=600

# make_inputs: index, edges, particles and ticks.  Few different keys, so that
# the second one decides, and a number of its own in each record that has room.
make_inputs()
{
	/usr/bin/python3 - <<-'END'
		import math, random, struct
		random.seed(1)
		count = 5000
		energies = [float(n) for n in range(-50, 50)] + [
		    0.0, -0.0, 1e300, -1e300, 5e-324,
		    math.inf, -math.inf, math.nan, math.copysign(math.nan, -1)]
		symbols = [b"AAPL    ", b"MSFT    ", b"A       ", b"BRK.A   "]
		pick = random.choice
		with open("index", "wb") as file:
		    for i in range(count):
		        number = random.randrange(2000) << 20
		        file.write(struct.pack(">QII", i, number, 0))
		with open("edges", "wb") as file:
		    for i in range(count):
		        file.write(struct.pack("<QQ", pick([1, 255, 256, 2 ** 63]),
		                               random.randrange(1 << 64)))
		with open("particles", "wb") as file:
		    for i in range(count):
		        file.write(struct.pack("<Qdfff", i, pick(energies),
		                               pick([-1.0, -1 / 3, 0.0, 2 / 3, 1.0]),
		                               random.random(), 0) + bytes(4))
		with open("ticks", "wb") as file:
		    for i in range(count):
		        time = 10 ** 18 + random.randrange(300)
		        file.write(pick(symbols) + struct.pack("<Qd", time, i))
	END
}

# prepare NAME: the current folder for the examples of this page
prepare()
{
	case $1 in
	blinkgen) printf '#!/bin/sh\nexec blinksort - -o -\n' >sorter ;;
	blinkreport)
		"$BIN/blinktrial" --scenario=pagecache --trials=2 --records=1000 \
			--out=record >made 2>&1 || fail "$(cat made)"
		cp -R record baseline ;;
	blinkreport-published)
		cp -R "$RUNS/2026-11-22-zen4-1" record
		cp -R "$RUNS/2026-11-22-zen4-1-machine" machine ;;
	blinksort)
		make_inputs
		"$BIN/blinkgen" -a 1000 sample
		{ head -c 128 /dev/zero; cat sample; } >with.header
		mkdir disk1 disk2
		"$BIN/blinkgen" -a 1000 disk1/in
		"$BIN/blinkgen" -a -b1000 1000 disk2/in ;;
	blinksort-order) make_inputs ;;
	blinktune) cp -R "$REPO/tests/data/machines/systemd-server" machine ;;
	blinkval)
		make_inputs
		make_parts ;;
	esac
	[ ! -e sorter ] || chmod +x sorter
}

# make_parts: the outputs and inputs of blinkval(1), in two parts
make_parts()
{
	"$BIN/blinksort" particles -o sorted0 -o sorted1 --record-size=32 \
		--key=8:f64 --unique
	cat sorted1 >particles0
	cat sorted0 >particles1
	"$BIN/blinksort" ticks -o newest --record-size=24 --key=8:u64:desc \
		--head=1000
	"$BIN/blinkgen" -a 2000 parts
	"$BIN/blinksort" parts -o part0 -o part1
}

# script_of PAGE: its examples, in ./script
script_of()
{
	python3 "$REPO/tests/programs/page_examples.py" "$1" >script
	sed -i -e 's/--trials=[0-9]*/--trials=4/' \
		-e 's/\(blinktrial characterise\)/\1 --quick/' \
		-e "s/127\.0\.0\./127.$((BASHPID / 250 % 250)).$((BASHPID % 250))./g" \
		script
}

# case_page PAGE
case_page()
{
	local status=0

	script_of "$1"
	prepare "$(basename "${1%.*}")"
	env HOME="$PWD" PATH="$PWD:$BIN:$PATH" BLINKTUNE_ROOT="$PWD/machine" \
		BLINKTUNE_STATE="$PWD/state" timeout "$LIMIT_S" \
		bash script >out 2>&1 </dev/null || status=$?
	[ "$status" = 0 ] || fail "$(tail -n 5 out)"
	case ${1##*/} in
	blinksort.1) expect_sorted_as_said edges ;;
	blinksort-order.7) expect_sorted_as_said index particles ticks ;;
	esac
}

# A prompt in the page as it is shown begins an example that script_of knows.
case_none_is_missed()
{
	local page

	for page in "${PAGES[@]}"; do
		script_of "$page"
		mandoc -Tascii "$page" | sed 's/.\x08//g' >shown
		expect_match "^# $(grep -c '^ *[$#] ' shown) examples\$" script
	done
}

# refused WORDS: the page on standard input is not taken
refused()
{
	cat - >page
	! python3 "$REPO/tests/programs/page_examples.py" page >script 2>said ||
		fail "taken: $(cat page)"
	expect_match "$1" said
}

case_unmarked_are_refused()
{
	refused 'for root, and not marked: reboot' <<-'END'
		.Sh EXAMPLES
		.Dl # reboot
	END
	refused 'outside of EXAMPLES: \$ ls' <<-'END'
		.Sh OPTIONS
		.Dl $ ls
	END
	refused 'neither a command nor what one prints: ls' <<-'END'
		.Sh EXAMPLES
		.Dl $ true
		.Bd -literal
		ls
		.Ed
	END
	refused 'there is no example' <<<'.Sh EXAMPLES'
}

# expect_sorted_as_said NAME...: of the files that make_inputs has made
expect_sorted_as_said()
{
	/usr/bin/python3 - "$@" <<-'END'
		import math, struct, sys
		def total(number):
		    if math.isnan(number):
		        return math.copysign(1, number), 0, 0
		    return 0, number, math.copysign(1, number)
		def check(name, size, key):
		    data = open(name, "rb").read()
		    records = [data[i:i + size] for i in range(0, len(data), size)]
		    want = b"".join(sorted(records, key=key))
		    assert len(records) == 5000, name
		    assert open(name + ".sorted", "rb").read() == want, name
		def edge(record):
		    source, target = struct.unpack("<QQ", record)
		    return source, -target
		def particle(record):
		    _, energy, charge = struct.unpack("<Qdf", record[:20])
		    return total(energy), total(charge)
		def tick(record):
		    symbol, time = struct.unpack("<8sQ", record[:16])
		    return symbol, -time
		def number(record):
		    return struct.unpack(">I", record[8:12])
		shapes = {"index": (16, number), "edges": (16, edge),
		          "particles": (32, particle), "ticks": (24, tick)}
		for name in sys.argv[1:]:
		    check(name, *shapes[name])
	END
}

check none_is_missed case_none_is_missed
check unmarked_are_refused case_unmarked_are_refused
for page in "${PAGES[@]}"; do
	name=$(basename "${page%.*}")
	check "${name//-/_}" case_page "$page"
done
finish
