#!/bin/bash
# check_examples.sh - the examples of blinksort(1), as a reader pastes them
#
# Each command under EXAMPLES is run, from top to bottom and in one folder, but
# for those that need a cluster or certain disks.  Python has made the files that
# they sort, and compares what comes out with its own stable sort.

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

if [ "${VARIANT:-dyn}" != dyn ]; then
	skip examples "a reader has the plain build"
	finish
fi

readonly PAGE=$REPO/src/programs/blinksort.1
# Of commands: they need hosts, the disks /a and /b, or arrays.
readonly ELSEWHERE='^(blinksh|srun) | /a/|/dev/md/'

# examples_of PAGE: its commands, in the order of the page
examples_of()
{
	awk '
	/^\.Sh / { inside = $2 == "EXAMPLES"; next }
	!inside { next }
	/^\.Bd / { block = 1; next }
	/^\.Ed/ { block = 0; next }
	/^\.Dl / { sub(/^\.Dl /, ""); print; next }
	block' "$1" | sed -e ':a' -e 's/\\e$/\\/' -e '/\\$/{N;ba' -e '}' \
		-e 's/ *\\\n[ 	]*/ /g'
}

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

case_commands()
{
	local command

	make_inputs
	examples_of "$PAGE" >commands
	[ "$(grep -c -E "$ELSEWHERE" commands)" = 9 ] ||
		fail "not nine commands are for other machines"
	grep -v -E "$ELSEWHERE" commands >here
	while IFS= read -r command <&3; do
		PATH=$BIN:$PATH timeout 300 bash -c "$command" >>said 2>&1 ||
			fail "status $?: $command: $(tail -n 3 said)"
	done 3<here
	expect_sorted_as_said
}

expect_sorted_as_said()
{
	/usr/bin/python3 - <<-'END'
		import math, struct
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
		check("index", 16, lambda record: struct.unpack(">I", record[8:12]))
		check("edges", 16, edge)
		check("particles", 32, particle)
		check("ticks", 24, tick)
	END
}

check commands case_commands
finish
