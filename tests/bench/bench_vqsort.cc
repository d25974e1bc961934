// bench_vqsort.cc - sort a file of 100-byte records by Highway's VQSort
//
// USAGE: bench_vqsort INPUT OUTPUT; bench_vqsort --version
//
// As a user of the library would who wants a fast program: the input is mapped,
// the library sorts 16 bytes for each record, all CPUs copy the records in this
// order into pieces of the output and write them.  peers.py compiles this
// program if Debian's libhwy-dev is installed.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <hwy/contrib/sort/vqsort.h>
#include <hwy/highway.h>

namespace
{
const size_t record_bytes = 100;
// A piece of the output fits into the second-level cache.
const size_t piece_records = 4096;
// So many records ahead are prefetched.
const size_t ahead = 16;

[[noreturn]] void fail(const char *what)
{
	perror(what);
	exit(3);
}

// The ten bytes of the key, and below them the record's number: 48 bits.
hwy::uint128_t entry_of(const unsigned char *record, size_t number)
{
	hwy::uint128_t entry;

	entry.hi = 0;
	entry.lo = number;
	for (int i = 0; i < 8; i++)
		entry.hi = entry.hi << 8 | record[i];
	entry.lo |= (uint64_t)record[8] << 56 | (uint64_t)record[9] << 48;
	return entry;
}

void write_sorted(int fd, const unsigned char *records,
		  const hwy::uint128_t *entries, size_t count)
{
#pragma omp parallel for schedule(dynamic)
	for (size_t first = 0; first < count; first += piece_records) {
		static thread_local unsigned char
			piece[piece_records * record_bytes];
		const size_t after = first + piece_records < count
					     ? first + piece_records
					     : count;
		const uint64_t mask = (1ull << 48) - 1;
		const size_t bytes = (after - first) * record_bytes;

		for (size_t i = first; i < after; i++) {
			const size_t later = i + ahead < count ? i + ahead : i;

			__builtin_prefetch(records + (entries[later].lo &
						      mask) * record_bytes);
			memcpy(piece + (i - first) * record_bytes,
			       records + (entries[i].lo & mask) * record_bytes,
			       record_bytes);
		}
		if (pwrite(fd, piece, bytes, (off_t)(first * record_bytes)) !=
		    (ssize_t)bytes)
			fail("write");
	}
}
} // namespace

int main(int argc, char **argv)
{
	struct stat status;

	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("%d.%d.%d\n", HWY_MAJOR, HWY_MINOR, HWY_PATCH);
		return 0;
	}
	if (argc != 3) {
		fputs("usage: bench_vqsort INPUT OUTPUT\n", stderr);
		return 2;
	}
	const int in = open(argv[1], O_RDONLY | O_CLOEXEC);
	const int out =
		open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (in < 0 || out < 0 || fstat(in, &status) != 0)
		fail("open");
	const size_t count = (size_t)status.st_size / record_bytes;
	void *const mapped = mmap(nullptr, (size_t)status.st_size, PROT_READ,
				  MAP_PRIVATE | MAP_POPULATE, in, 0);

	if (mapped == MAP_FAILED)
		fail("mmap");
	const auto *records = static_cast<const unsigned char *>(mapped);
	std::unique_ptr<hwy::uint128_t[]> entries(new hwy::uint128_t[count]);

#pragma omp parallel for
	for (size_t i = 0; i < count; i++)
		entries[i] = entry_of(records + i * record_bytes, i);
	hwy::Sorter()(entries.get(), count, hwy::SortAscending());
	write_sorted(out, records, entries.get(), count);
	return 0;
}
