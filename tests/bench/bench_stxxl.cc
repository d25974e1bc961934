// bench_stxxl.cc - sort a file of 100-byte records by STXXL, in its place
//
// USAGE: bench_stxxl FILE SCRATCH MEMORY_BYTES OUTPUT
//
// SCRATCH is a file that STXXL makes and removes.  The sorted file is then
// named OUTPUT.  external.sh compiles this program if Debian's libstxxl-dev is
// installed.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include <stxxl/io>
#include <stxxl/mng>
#include <stxxl/sort>
#include <stxxl/vector>

namespace
{
const unsigned record_bytes = 100, key_bytes = 10;
// STXXL wants whole records in a block, O_DIRECT whole sectors of 4096 bytes.
const unsigned block_bytes = 1000 * 4096;
// Room for the runs: what STXXL has not reserved it adds.
const stxxl::uint64 scratch_bytes = 64ull << 20;

struct record {
	unsigned char bytes[record_bytes];
};

struct before {
	bool operator()(const record &a, const record &b) const
	{
		return std::memcmp(a.bytes, b.bytes, key_bytes) < 0;
	}
	record min_value() const
	{
		return filled(0);
	}
	record max_value() const
	{
		return filled(0xff);
	}
	static record filled(int byte)
	{
		record made;

		std::memset(made.bytes, byte, record_bytes);
		return made;
	}
};

typedef stxxl::VECTOR_GENERATOR<record, 1, 1, block_bytes>::result records;

void sort_file(const char *path, stxxl::unsigned_type memory_bytes)
{
	stxxl::syscall_file file(path, stxxl::file::RDWR | stxxl::file::DIRECT);
	records all(&file);

	stxxl::sort(all.begin(), all.end(), before(), memory_bytes);
	all.flush();
}
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		std::cerr
			<< "usage: bench_stxxl FILE SCRATCH MEMORY_BYTES OUTPUT\n";
		return 2;
	}
	stxxl::disk_config scratch(argv[2], scratch_bytes, "syscall");

	scratch.autogrow = true;
	scratch.delete_on_exit = true;
	scratch.direct = stxxl::disk_config::DIRECT_ON;
	stxxl::config::get_instance()->add_disk(scratch);
	try {
		sort_file(argv[1], std::strtoull(argv[3], nullptr, 10));
	} catch (const std::exception &error) {
		std::cerr << "bench_stxxl: " << argv[1] << ": " << error.what()
			  << '\n';
		return 3;
	}
	if (std::rename(argv[1], argv[4]) != 0) {
		std::perror(argv[4]);
		return 3;
	}
	return 0;
}
