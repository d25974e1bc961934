#!/bin/bash
# check_options.sh - the command lines of all C programs: what each of them says
# to one that is wrong, word for word, and that it then does nothing

# shellcheck disable=SC2317 # cases are called by check
. "$(dirname "$0")/tool_lib.sh"

readonly PROGRAMS=(blinksort blinkgen blinkval blinkprobe blinkd blinksh)
unset BLINK_KEY WCOLL

# listing: what is in the current folder, with contents
listing()
{
	find . -type f -exec sha256sum {} + | sort
	find . ! -type f | sort
}

# refused MESSAGE PROGRAM ARGUMENT...: status 2, this line and no more, and the
# folder is as before
refused()
{
	local message=$1 program=$2 before status=0
	shift 2
	before=$(listing)
	timeout 60 "$BIN/$program" "$@" >"$SCRATCH/out" 2>"$SCRATCH/err" \
		</dev/null || status=$?
	[ "$status" = 2 ] || fail "status $status: $program $*: $(
		head -c 400 "$SCRATCH/err"
	)"
	expect_empty "$SCRATCH/out"
	printf '%s: %s\n' "$program" "$message" >"$SCRATCH/want"
	diff "$SCRATCH/want" "$SCRATCH/err" >&2 || fail "of: $program $*"
	[ "$before" = "$(listing)" ] || fail "changed the folder: $program $*"
}

# records NAME: a file of some
records()
{
	"$BIN/blinkgen" -a 100 "$1"
}

# The value of the last word is missing: a C library's getopt may count on.
case_missing_value()
{
	records in
	refused "-o: FILE is missing" blinksort in -o
	refused "-o: FILE is missing" blinksort -o
	refused "--output: FILE is missing" blinksort in --output
	refused "--trace: FILE is missing" blinksort in -o out --trace
	refused "--key: OFFSET:LENGTH is missing" blinksort in -o out --key
	refused "-b: START is missing" blinkgen 10 out -b
	refused "-t: N is missing" blinkgen -at
	refused "-o: FILE is missing" blinkval in -o
	refused "-t: N is missing" blinkval -qt
	refused "--against: INPUT is missing" blinkval in --against
	refused "--key: OFFSET:LENGTH is missing" blinkval in --key
	refused "--area: SIZE is missing" blinkprobe memory --area
	refused "--rounds: N is missing" blinkprobe spawn --rounds
	refused "--rank: R is missing" blinkprobe network --rank
	refused "--key-file: FILE is missing" blinkd --key-file
	refused "--allow: DIR is missing" blinkd --allow
	refused "-w: HOSTS is missing" blinksh -w
	refused "-x: HOSTS is missing" blinksh -x
	refused "-x: HOSTS is missing" blinksh -w 127.0.0.2 -x
	refused "-w: HOSTS is missing" blinksh -qw
	refused "--key-file: FILE is missing" blinksh --key-file
	# The end of the options is no value.
	refused "-w: HOSTS is missing" blinksh -w -- /bin/true
	refused "--rounds: N is missing" blinkprobe spawn --rounds -- /bin/true
	refused "-o: FILE is missing" blinksort -o -- in
}

case_empty_value()
{
	records in
	refused "-o: FILE is empty" blinksort in -o ""
	refused "--output: FILE is empty" blinksort in --output=
	refused "--output: FILE is empty" blinksort in --output ""
	refused "--key: OFFSET:LENGTH is empty" blinksort in -o out --key=
	refused "--gather: FILE is empty" blinksort in --gather= --cluster
	refused "--job: NAME is empty" blinksort in -o out --cluster --job=
	refused "-b: START is empty" blinkgen -b "" 10 out
	refused "-o: FILE is empty" blinkval -o "" in
	refused "--against: INPUT is empty" blinkval --against= in
	refused "--pattern: KIND is empty" blinkprobe memory --pattern=
	refused "--listen: ADDRESS:PORT is empty" blinkd --listen=
	refused "-w: HOSTS is empty" blinksh -w "" -- /bin/true
	refused "--timeout: SECONDS is empty" blinksh --timeout= -- /bin/true
}

# A name is given in full; what an abbreviation would have been is named.
case_abbreviations()
{
	records in
	echo old >out
	refused "--checks: no such option; is --checksum meant?" \
		blinksort in -o out --checks
	refused "--out: no such option; is --output meant?" \
		blinksort in --out=out
	refused "--rec: no such option; is --record-size meant?" \
		blinksort in -o out --rec 10
	refused "--hel: no such option; is --help meant?" blinksort --hel
	refused "--vers: no such option; is --version meant?" blinkgen --vers
	refused "--h: no such option; is --help meant?" blinkgen --h
	refused "--pat: no such option; is --pattern meant?" \
		blinkprobe memory --pat=read
	refused "--fore: no such option; is --foreground meant?" blinkd --fore
	refused "--keep: no such option; is --keep-going meant?" \
		blinksh --keep -- /bin/true
}

case_unknown()
{
	local program

	for program in "${PROGRAMS[@]}"; do
		refused "--nonsense: no such option; see --help" \
			"$program" --nonsense
		refused "--nonsense: no such option; see --help" \
			"$program" --nonsense=3
		refused "--=x: no such option; see --help" "$program" --=x
		refused "-Z: no such option; see --help" "$program" -Z
		refused "-ü: no such option; see --help" "$program" -üx
		refused '-\xff: no such option; see --help' \
			"$program" $'-\xff'
		refused '-\x0a: no such option; see --help' \
			"$program" $'-\n'
	done
	refused "-Z: no such option; see --help" blinkgen -aZ 10 out
	refused "-Z: no such option; see --help" blinksh -qNZ
	refused "--payload: no such option; see --help" \
		blinkprobe memory --payload=16
	refused "--area: no such option; see --help" \
		blinkprobe network --area=64K
	refused "--rounds: no such option; see --help" \
		blinkprobe nothing --rounds=3
}

# -h and -V are all programs' short names for the two common options.
case_common_letters()
{
	local program

	for program in "${PROGRAMS[@]}"; do
		expect_same <("$BIN/$program" -h) <("$BIN/$program" --help)
		expect_same <("$BIN/$program" -V) <("$BIN/$program" --version)
	done
}

case_flag_with_value()
{
	local program

	for program in "${PROGRAMS[@]}"; do
		[ "$program" = blinksort ] ||
			refused "--help: takes no value" "$program" --help=x
		refused "-h: takes no value" "$program" -h=x
		refused "--version: takes no value" "$program" --version=
	done
	records in
	refused "--json: takes no value" blinksort in -o out --json=x
	refused "-q: takes no value" blinkval -q=1 in
	refused "--unique=1: not first or last" blinkval --unique=1 in
	refused "-r: takes no value" blinkval -r=1 in
	refused "-a: takes no value" blinkgen -a= 10 out
	refused "--foreground: takes no value" blinkd --foreground=no
	refused "--json: takes no value" blinksh --json=1 -- /bin/true
}

case_twice()
{
	records in
	refused "--record-size: given twice" \
		blinksort in -o out --record-size 100 --record-size 10
	refused "--trace: given twice" \
		blinksort in -o out --trace=a --trace=b
	refused "-b: given twice" blinkgen -b1 -b2 10 out
	refused "-t: given twice" blinkgen -t1 -at2 10 out
	refused "-o: given twice" blinkval -o a -o b in
	refused "--record-size: given twice" \
		blinkval --record-size=1 --record-size=1 in
	refused "-s: not together with --against" blinkval -s in --against in
	refused "--rounds: given twice" \
		blinkprobe memory --rounds=1 --rounds=1
	refused "--key-file: given twice" blinkd --key-file=a --key-file=b
	refused "--listen: given twice" \
		blinkd --listen 127.0.0.2:1 --listen 127.0.0.2:2
	refused "--timeout: given twice" \
		blinksh --timeout=1 --timeout=2 -- /bin/true
	refused "--kill-on-fail: not together with --keep-going" \
		blinksh --keep-going --kill-on-fail -- /bin/true
	refused "-b: not together with --json" blinksh --json -b -- /bin/true
	refused "-N: not together with -b" blinksh -bN -- /bin/true
}

# blinkd and blinksh had --key for --key-file.
case_older_spelling()
{
	local program

	for program in blinkd blinksh; do
		refused "--key: FILE is missing" "$program" --key
		refused "--key-file: given twice" "$program" --key=a --key-file=b
		refused "--ke: no such option; is --key-file meant?" "$program" --ke
	done
	refused "--listen: is missing; see blinkd --help" blinkd --key=k
	refused "-w: no hosts" blinksh --key k -- /bin/true
}

# What may be given again, and flags, which say the same again.
case_twice_allowed()
{
	records in
	expect_status 0 "$BIN/blinksort" in -o a --output b --sync --sync
	expect_folder . a b in
	expect_status 0 "$BIN/blinkgen" -aa -a 100 again
	expect_same in again
	expect_status 1 "$BIN/blinkval" -qq -q in
	expect_status 1 "$BIN/blinkval" in -rr --unique --reverse --unique -q \
		--against in --against in
	expect_status 1 "$BIN/blinkval" -q --key=0:5 --record-size=100 -o sum in \
		--key=5:u8 --key=6:u32be
	expect_status 1 "$BIN/blinkval" -q -s sum
	# Both lists are read before the missing key is found.
	refused "--key-file: is missing, and BLINK_KEY is not set; see blinksh --help" \
		blinksh -w a,b -w c -x a -x b -qq -- /bin/true
	refused "--listen: is missing; see blinkd --help" \
		blinkd --allow /bin --allow=/usr/bin --key-file=k
}

# What hands give blinksh that are used to pdsh(1)
case_of_pdsh()
{
	local option hosts=(blinksh -w 127.0.0.2)

	refused "-f: all nodes run the command at once" "${hosts[@]}" -f 8 -- /bin/ls
	for option in -a -g; do
		refused "$option: -w names the hosts" \
			blinksh "$option" all -- /bin/ls
	done
	refused "-u: use --timeout" "${hosts[@]}" -u 8 -- /bin/ls
	refused "-t: use --lost-after" "${hosts[@]}" -t 8 -- /bin/ls
	refused "-R: blinkd starts the command, without ssh or rsh" \
		"${hosts[@]}" -R ssh -- /bin/ls
	refused "-l: the command runs as the user of the daemon" \
		"${hosts[@]}" -l root -- /bin/ls
	refused "stop: SIGTERM stops a daemon, on its own host; see blinkd(1)" \
		"${hosts[@]}" stop
}

# What hands give blinksort that are used to sort(1): what to do instead
case_of_sort()
{
	local option text="keys are bytes or binary numbers, not text; see --key"

	records in
	refused "-c: use blinkval, which checks files; see blinkval(1)" \
		blinksort -c in
	refused "-C: use blinkval -q, which checks files; see blinkval(1)" \
		blinksort -C in
	refused "-k: use --key=OFFSET:LENGTH or --key=OFFSET:TYPE, in bytes" \
		blinksort -rk1,10 in -o out
	refused "-t: records have no fields; --key counts bytes" \
		blinksort -t, -k2 in -o out
	refused "-n: use --key=0:u64 and such: a binary number, not one of digits" \
		blinksort -sn in -o out
	refused "-g: use --key=0:f64 and such: a binary number, not one of digits" \
		blinksort -g in -o out
	for option in -b -d -f -i -M --ignore-case --month-sort --version-sort \
		--human-numeric-sort --sort=version; do
		refused "${option%%=*}: $text" blinksort "$option" in -o out
	done
	refused "--compress-program: use --compress=lz4 or --compress=zstd" \
		blinksort --compress-program=gzip in -o out
	refused "--files0-from: name the files as INPUT" \
		blinksort --files0-from=in -o out
	refused "--debug: use --explain" blinksort --debug in -o out
	refused "--dry-run: use --explain" blinksort --dry-run in -o out
	for option in --desc --descending; do
		refused "$option: use -r, or --key=OFFSET:TYPE:desc" \
			blinksort "$option" in -o out
	done
	expect_folder . in
	expect_status 0 "$BIN/blinksort" -s --parallel=1 --buffer-size=500MB in \
		-o out
}

case_values()
{
	records in
	refused "--key=5: not of the form OFFSET:LENGTH or OFFSET:TYPE" \
		blinksort in -o out --key 5
	refused "--key=x:5: the offset is not a number from 0 to 16777215" \
		blinksort in -o out --key=x:5
	refused "--key=:u8: the offset is not a number from 0 to 16777215" \
		blinksort in -o out --key=:u8
	refused "--key=5:0: the length is not a number from 1 to 16777216" \
		blinksort in -o out --key=5:0
	for key in 0:u32:asc 0:f16:4 0:f64:nanlast:nanlast; do
		refused "--key=$key: what follows the length or type is not desc,\
 nanlast or nanfirst, each once; ascending is the default" \
			blinksort in -o out --key="$key"
	done
	for program in blinksort blinkval; do
		refused "--key=0:u32:nanlast: nanlast and nanfirst are for f16, \
bf16, f32 and f64: nothing else has a NaN" \
			"$program" in --key=0:u32:nanlast
		refused "--key=0:f64:nanlast:nanfirst: nanlast and nanfirst \
exclude each other" \
			"$program" in --key=0:f64:nanlast:nanfirst
	done
	for key in 5:desc 5::desc 5:u65 5:u7 5:u256 5:u8be 5:bf32 5:f128 5:i \
		5:F64 5:u32le 5:; do
		refused "--key=$key: the type is not u8, u16, u32, u64, u128, \
i8 to i128, f16, bf16, f32 or f64, nor one of them with be behind it, nor a length; \
numbers are little endian without be" \
			blinksort in -o out --key="$key"
	done
	refused "--key=0:9: more than 8 keys" blinksort in -o out \
		--key={0:1,0:2,0:3,0:4,0:5,0:6,0:7,0:8,0:9}
	refused "--key=96:u64:desc: ends behind the record of 100 bytes" \
		blinksort in -o out --key=0:u16be --key=96:u64:desc
	refused "--io=fast: not auto, buffered, mmap or direct" \
		blinksort in -o out --io=fast
	refused "--threads=0: not a number from 1 to 256" \
		blinksort in -o out --threads=0
	for size in x 1.5G 1e9 500Mb; do
		refused "--memory=$size: not a size: digits, and K, M, G or T \
for powers of 1024, such as 1536M" blinksort in -o out --memory="$size"
	done
	for size in % 0% 101% 50.5% 50%% 50%M -1% x% 18446744073709551617%; do
		refused "--memory=$size: not a whole number from 1% to 100%" \
			blinksort in -o out --memory="$size"
	done
	refused "--memory=0: not from 1 to 9223372036854775807 bytes" \
		blinksort in -o out --memory=0
	for suppose in 3 0:5 3:0 :5 3: 3:5: 65536:5 -1:5 3:5K \
		3:9223372036854775808; do
		refused "--suppose=$suppose: not RANKS:RECORDS, up to 65535 \
ranks and all their records, such as 100:1000000000000" \
			blinksort --explain --suppose="$suppose"
	done
	for suppose in mtu=575 mtu= mtu=65536 mtu=15e2; do
		refused "--suppose=3:5,$suppose: mtu is not a number from 576 \
to 65535" blinksort --explain --suppose="3:5,$suppose"
	done
	refused "--suppose=3:5,mtu=576,senders=0: senders is not a number \
from 1 to 4096" blinksort --explain --suppose=3:5,mtu=576,senders=0
	for suppose in mtu '' link=1 =1; do
		refused "--suppose=3:5,$suppose: '${suppose%=*}' is not mtu, \
overhead, latency-ns, senders, receivers, shared-cpus, memory-read, memory-copy, \
start-ns, compressed, readers, keepers or storage, with =NUMBER" blinksort --explain --suppose="3:5,$suppose"
	done
	refused "--suppose=3:5,mtu=576,mtu=1500: mtu is given twice" \
		blinksort --explain --suppose=3:5,mtu=576,mtu=1500
	refused "--roles: 129 ranks: roles may differ among 128" \
		blinksort --explain --suppose=129:99999999999 --roles=auto
	refused "--roles: 5000 ranks: roles may differ among 128" \
		blinksort --explain --suppose=5000:99999999999 --roles=read:1
	refused "--roles: there is no rank 3: ranks are numbered from 0 to 2" \
		blinksort --explain --suppose=3:99999999999 --roles=read:3
	refused "--roles: auto needs --disk-rates and --link-rate" \
		blinksort --explain --suppose=3:99999999999 --roles=auto
	refused "--suppose: more than 32 TiB for each rank" \
		blinksort --explain --suppose=2:9223372036854775807
	for rate in 0 fast 7bit 25GBit 1.5Gbit 99999999999Tbit; do
		refused "--link-rate=$rate: not bytes a second, such as 300M, \
or bits, such as 25Gbit" blinksort in -o out --cluster --link-rate="$rate"
	done
	refused "--schedule=none: not rounds, all-at-once, auto or grid" \
		blinksort in -o out --cluster --schedule=none
	for schedule in grid= grid=0x1 grid=1x0 grid=3 grid=x grid=3x grid=x3 \
		grid=2x4x1 grid=-1x2 grid=4097x1 grid=1x4097 \
		grid=00000008x1 grid=1x18446744073709551617; do
		refused "--schedule=$schedule: not grid=AxB, such as grid=8x16, \
with sides from 1 to 4096" \
			blinksort in -o out --cluster --schedule="$schedule"
	done
	refused "--schedule=grids: not rounds, all-at-once, auto or grid" \
		blinksort in -o out --cluster --schedule=grids
	refused "--schedule: all-at-once only with --transport=udp" \
		blinksort in -o out --transport=mpi --schedule=all-at-once
	refused "--exchange-threads=9: not a number from 1 to 8" \
		blinksort in -o out --cluster --exchange-threads=9
	refused "--exchange-threads: only with --cluster or --nodes" \
		blinksort in -o out --exchange-threads=2
	refused "--transport=tcp: not udp or mpi" \
		blinksort in -o out --cluster --transport=tcp
	for option in --nodes=a --rank=0 --key-file=key --job=a \
		--port=1000 --payload=1472 --exchange-threads=2 --plain; do
		refused "${option%%=*}: only with --transport=udp" \
			blinksort in -o out --transport=mpi "$option"
	done
	refused "--by-reference=shm: not no, yes or auto" \
		blinksort in -o out --cluster --by-reference=shm
	refused "--key=95:10: ends behind the record of 100 bytes" \
		blinksort in -o out --key=95:10
	refused "-bx: not a number below 2^128, such as -b1000" \
		blinkgen -b x 10 out
	refused "-t257: not a number from 1 to 256" blinkgen -t257 10 out
	refused "-t0: not a number from 1 to 256" blinkval -t 0 in
	refused "--record-size=0: not a number from 1 to 16777216" \
		blinkval --record-size=0 in
	refused "--key=0:u63: the type is not u8, u16, u32, u64, u128, \
i8 to i128, f16, bf16, f32 or f64, nor one of them with be behind it, nor a length; \
numbers are little endian without be" \
		blinkval --key=0:u63 in
	refused "--key=0:9: more than 8 keys" blinkval in \
		--key={0:1,0:2,0:3,0:4,0:5,0:6,0:7,0:8,0:9}
	refused "--key=9:u64: ends behind the record of 16 bytes" \
		blinkval --record-size=16 --key=9:u64 in
	for option in --record-size=99 --key=0:9 --key=0:u64 --reverse -r \
		--key=0:10:desc; do
		refused "-o: only for records of 100 bytes by --key=0:10" \
			blinkval -o new "$option" in
		refused "-s: only for records of 100 bytes by --key=0:10" \
			blinkval -s "$option" in
	done
	refused "--area=100K: not a power of two" \
		blinkprobe memory --area=100K
	refused "--pattern=up: not read, write, copy, random, random-write or chase" \
		blinkprobe memory --pattern=up
	refused "--processes=-1: not a number from 0 to 2147483647" \
		blinkd --processes -1
	refused "--allow=in: Not a directory" blinkd --allow=in
	refused "--lease=1.2345: not a number of seconds from 0.001 to 864000" \
		blinksh --lease=1.2345 -- /bin/true
	refused "--repeat=0: not a number from 1 to 1000000" \
		blinksh --repeat=0 -- /bin/true
}

case_operands()
{
	local both="'blinksort - -o -' reads standard input and writes standard\
 output"
	local probes="memory, codec, spawn, run, network, noise, simulate or nothing"

	records in
	refused "INPUT: is missing ($both)" blinksort
	refused "INPUT: is missing ($both)" blinksort -o out
	refused "-o: is missing ('-o -' is standard output); see blinksort --help" \
		blinksort in
	refused "--rank: needs --nodes, which lists the hosts of all ranks" \
		blinksort in -o out --rank=0
	refused "--explain: needs regular files, or --suppose=1:RECORDS alone" \
		blinksort --explain - -o out
	refused "--suppose: only with --explain" blinksort --suppose=2:3
	refused "INPUT: not with --suppose, which needs no file" \
		blinksort --explain --suppose=2:3 in
	refused "-o: not with --suppose, which needs no file" \
		blinksort --explain --suppose=2:3 -o out
	refused "-T: not with --suppose, which needs no file" \
		blinksort --explain --suppose=2:3 -T .
	refused "--suppose: not with --cluster or --nodes" \
		blinksort --explain --suppose=2:3 --cluster
	refused "--link-rate: only with --cluster, --nodes or --suppose" \
		blinksort in -o out --link-rate=1G
	refused "--job: only with --cluster or --nodes" \
		blinksort in -o out --job=x
	refused "COUNT: is missing; see blinkgen --help" blinkgen -a
	refused "FILE: is missing; see blinkgen --help" blinkgen 10
	refused "x: one word too many: COUNT and FILE are expected" \
		blinkgen 10 out x
	refused "ten: COUNT is a whole number below 2^64" blinkgen ten out
	refused "FILE: is missing; see blinkval --help" blinkval -q
	refused "PROBE: is missing; see blinkprobe --help" blinkprobe
	refused "disk: not $probes" blinkprobe disk
	refused "x: one word too many for memory" blinkprobe memory x
	refused "x: one word too many for nothing" blinkprobe nothing x
	refused "x: not an option; see blinkd --help" blinkd x
	refused "--key-file: is missing, and BLINK_KEY is not set; see blinkd --help" \
		blinkd --listen 127.0.0.2:1
	refused "COMMAND: is missing; see blinksh --help" blinksh -w 127.0.0.2
	refused "COMMAND: is missing; see blinksh --help" blinksh
	refused "keygen: one FILE is expected" blinksh keygen
	refused "keygen: FILE is empty or begins with '-'; write ./ before such \
a name" blinksh keygen --help
}

# "-" is a stream to other programs: no file of that name is made, nor read.
case_dash()
{
	local stream="'-' is no stream here"

	records in
	refused "-T: $stream: DIR is a regular file; write ./- if that is its \
name" blinksort in -o out -T -
	refused "--gather: $stream: FILE is a regular file; write ./- if that \
is its name" blinksort in --gather=-
	refused "--trace: $stream: FILE is a regular file; write ./- if that is \
its name" blinksort in -o out --trace -
	refused "-: is no stream here: name a regular file, or ./- for a file \
of this name" blinksort - -o out --nodes=localhost --rank=0
	refused "-: is no stream here: name a regular file, or ./- for a file \
of this name" blinksort in -o - --nodes=localhost --rank=0
	refused "-: given twice: standard input can be read once" blinkval - -
	refused "-o: $stream: FILE is a regular file; write ./- if that is \
its name" blinkval -o - in
	refused "-o: FILE is '--sync', which looks like an option; write \
./--sync if that is its name" blinksort in -o --sync
	refused "--against: $stream: INPUT is a regular file; write ./- if \
that is its name" blinkval in --against -
	refused "-o: FILE is '-q', which looks like an option; write ./-q if \
that is its name" blinkval -o -q in
	refused "'': a file's name is empty" blinksort "" -o out
	refused "'': a file's name is empty" blinkgen 10 ""
	refused "'': a file's name is empty" blinkval ""
	"$BIN/blinkgen" 10 ./-
	expect_status 0 "$BIN/blinksort" ./- -o ./--sync
	expect_folder . - --sync in
}

# blinkval -o: what is there stays unless it is a summary.
case_summary_replaces_no_other()
{
	records in
	sort in -o sorted
	cp sorted part
	ln sorted hard
	ln -s sorted soft
	for name in sorted ./sorted hard soft; do
		refused "$name: is an input file, too" \
			blinkval -o "$name" sorted
		refused "$name: is an input file, too" \
			blinkval -q -o "$name" part sorted
		refused "$name: is an input file, too" \
			blinkval -q -o "$name" part --against=sorted
	done
	expect_refused_summary part sorted
	"$BIN/blinkval" -q -o one sorted
	cat one one >two
	expect_refused_summary two sorted
	head -c 280 /dev/zero >zeros
	expect_refused_summary zeros sorted
	refused "one: is an input file, too" blinkval -s -o one one
	# A summary, and an empty file, which has nothing to lose, go.
	"$BIN/blinkval" -q -o one part
	: >empty
	"$BIN/blinkval" -q -o empty part
	expect_same one empty
}

# expect_refused_summary PATH INPUT: status 3, and the file stays
expect_refused_summary()
{
	cp "$1" before
	expect_status 3 "$BIN/blinkval" -q -o "$1" "$2" 2>err
	echo "blinkval: $1: exists and is no summary: -o replaces nothing else" \
		>want
	expect_same want err
	expect_same before "$1"
	rm before err want
}

# Options may follow operands, and "--" ends them; but not in blinksh's command.
case_order()
{
	local program=$BIN/blinksort

	records in
	"$program" in -o a --key=0:10
	"$program" --key 0:10 -oa2 in
	expect_same a a2
	cp in -- --key=0:10
	"$program" -o b -- --key=0:10
	expect_same a b
	expect_status 1 "$BIN/blinkval" in -q
	"$BIN/blinkgen" 100 c -ac 2>sum
	expect_same in c
	expect_match '^[0-9a-f]+$' sum
	"$BIN/blinkgen" -act1 -b 5 95 d 2>sum
	tail -c 9500 in | expect_same - d
	expect_status 0 "$BIN/blinkprobe" spawn --rounds 1 /bin/test --rounds \
		>out
	refused "not_absolute: not ping, status, cancel or keygen; write '-- COMMAND'\
 to run a command" \
		blinksh not_absolute -w
	refused "-w: no hosts" blinksh /bin/true -w
}

# expect_help PROGRAM: the help text: its first words, no line too long,
# each option explained by a verb, not "the", "a", "of"
expect_help()
{
	expect_status 0 "$BIN/$1" --help >out 2>err
	expect_empty err
	[[ $(head -n 1 out) == "Usage: $1 "* ]] || fail "$1: $(head -n 1 out)"
	[ -z "$(tail -c 1 out)" ] || fail "$1: the last line does not end"
	! grep -E '^.{81}' out >&2 || fail "$1: lines of more than 80 columns"
	! grep -E '^ +-[^ ].*  (the|a|an|of|no|not|in|its|ours|one) ' out >&2 ||
		fail "$1: an option's text that begins with no verb"
	expect_match '^Statuses: 0' out
	expect_match "See $1\(1\)\.\$" out
	expect_status 0 "$BIN/$1" --version >out 2>err
	expect_empty err
	expect_one_line out
	expect_match "^$1 [^ ]+\$" out
}

case_help()
{
	local program

	for program in "${PROGRAMS[@]}" blinktune blinktrial blinkreport; do
		"$BIN/$program" --help >out
		[ "$(wc -l <out)" -le 60 ] || fail "$program: over 60 lines"
	done
	for program in "${PROGRAMS[@]}"; do
		expect_help "$program"
		expect_status 3 "$BIN/$program" --help >/dev/full 2>err
		expect_one_line err
		expect_status 3 "$BIN/$program" --version >/dev/full 2>err
		expect_one_line err
	done
	expect_status 0 "$BIN/blinkprobe" simulate --help >out
	[ "$(wc -l <out)" -le 60 ] || fail "simulate: over 60 lines"
	! grep -E '^.{81}' out >&2 || fail "simulate: long lines"
	expect_match '^Usage: blinkprobe simulate' out
	expect_status 0 "$BIN/blinkprobe" memory --help >out
	expect_match '^Usage: blinkprobe memory' out
}

# All options are in one topic, or in what is printed without one.
case_help_topics()
{
	local topic topics=(order cluster external tuning)

	for topic in "${topics[@]}" all; do
		expect_status 0 "$BIN/blinksort" --help="$topic" >"$topic" 2>err
		expect_empty err
		expect_match '^Usage: blinksort ' "$topic"
		expect_match '^or the network, .* See blinksort.*\([17]\)\.$' \
			"$topic"
		! grep -E '^.{81}' "$topic" >&2 || fail "$topic: long lines"
	done
	"$BIN/blinksort" --help | sort -u - "${topics[@]}" >want
	sort -u all | diff want - | grep '^[<>] .*  -' >differ || true
	expect_empty differ
	[ "$(wc -l <all)" -gt 90 ] || fail "few lines: $(cat all)"
	refused "--help=x: not order, cluster, external, tuning or all" \
		blinksort --help=x
	refused "--help=clust: not order, cluster, external, tuning or all" \
		blinksort in -o out --help=clust
	refused "--help: TOPIC is empty" blinksort --help=
}

# blinksort and blinktrial take the same words from a file, and refuse the same
# files; other programs have no such word.
case_argument_files()
{
	local program

	records in
	printf '%s\n' '# a site' '' '-r' '-o' 'out of @it' >words
	"$BIN/blinksort" in @words
	"$BIN/blinksort" in -r -o want
	cmp want 'out of @it'
	# Of Windows
	printf '%s\r\n' '--trials=1' '--quiet' '' "sh -c 'echo >>ran'" >words
	"$BIN/blinktrial" @words
	[ "$(wc -l <ran)" = 4 ]
	for program in blinksort blinktrial; do
		"$BIN/$program" --help | grep '@FILE' >/dev/null || fail "$program --help"
	done
	printf 'a\0b' >words
	head -c 1048577 /dev/zero | tr '\0' '\n' >many
	for program in blinksort blinktrial; do
		refused_file '@missing' 'missing: No such file or directory'
		refused_file '@.' '.: Is a directory'
		refused_file '@words' 'words: a byte 0 is no part of an argument'
		refused_file '@many' 'many: more than 1048576 bytes of arguments'
	done
	cp in @in
	"$BIN/blinksort" -o out -- @in
	"$BIN/blinksort" -o again ./@in
	cmp out again
	refused "@missing: COUNT is a whole number below 2^64" blinkgen @missing x
}

# refused_file WORD MESSAGE: by $program, with status 3
refused_file()
{
	local status=0

	"$BIN/$program" "$1" 2>err || status=$?
	[ "$status" = 3 ]
	echo "$program: $2" | expect_same err -
}

# blinksort(1) names each option, and it or another page explains it.
case_pages_have_all_options()
{
	local option pages=("$REPO"/src/programs/blinksort/blinksort{.1,-cluster.7,-external.7,-order.7})

	"$BIN/blinksort" --help=all | sed -n 's/^ \+\(-.*\)/\1/p' |
		sed 's/  .*//' | grep -o -E -e '(^|[ ,])-(-[a-z-]+|[A-Za-z])' |
		tr -d ' ,' | sed 's/^-//' | sort -u >options
	[ "$(wc -l <options)" -gt 40 ] || fail "few: $(cat options)"
	while read -r option; do
		grep -q -E -e "Fl $option( |,|\$)" "${pages[0]}" ||
			fail "blinksort.1 does not name -$option"
		grep -q -E -e "^\.It (.* )?Fl $option( |,|\$)" "${pages[@]}" ||
			fail "no page explains -$option"
	done <options
}

check missing_value case_missing_value
check empty_value case_empty_value
check abbreviations case_abbreviations
check unknown case_unknown
check common_letters case_common_letters
check flag_with_value case_flag_with_value
check twice case_twice
check older_spelling case_older_spelling
check twice_allowed case_twice_allowed
check of_pdsh case_of_pdsh
check of_sort case_of_sort
check values case_values
check operands case_operands
check dash case_dash
check summary_replaces_no_other case_summary_replaces_no_other
check order case_order
check help case_help
check help_topics case_help_topics
check argument_files case_argument_files
check pages_have_all_options case_pages_have_all_options
finish
