/* parse.c - strict numbers and sizes from the command line and from files */
#include "base/parse.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The digits that a text begins with. */
struct digits {
	unsigned __int128 value;
	bool overflow;	 /* more than 128 bits: value has no meaning */
	const char *end; /* the first byte behind them */
};

static struct digits take_digits(const char *text)
{
	const unsigned __int128 max = ~(unsigned __int128)0;
	struct digits digits = { .end = text };

	while (*digits.end >= '0' && *digits.end <= '9') {
		unsigned digit = (unsigned)(*digits.end++ - '0');

		if (digits.value > (max - digit) / 10)
			digits.overflow = true;
		digits.value = digits.value * 10 + digit;
	}
	return digits;
}

int parse_u128(const char *text, unsigned __int128 *value)
{
	struct digits digits = take_digits(text);

	if (digits.end == text || *digits.end != '\0')
		return -EINVAL;
	if (digits.overflow)
		return -ERANGE;
	*value = digits.value;
	return 0;
}

int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	unsigned __int128 wide;
	int error = parse_u128(text, &wide);

	if (error)
		return error;
	if (wide < min || wide > max)
		return -ERANGE;
	*value = (uint64_t)wide;
	return 0;
}

int parse_range(const char **text, uint64_t max, uint64_t *first,
		uint64_t *last)
{
	struct digits from = take_digits(*text), to = from;
	const char *end = from.end;
	bool is_range = *end == '-';

	if (is_range)
		to = take_digits(end + 1);
	if (from.end == *text || (is_range && to.end == end + 1))
		return -EINVAL;
	end = to.end;
	if (*end != '\0' && (*end != ',' || end[1] == '\0'))
		return -EINVAL;
	if (from.overflow || to.overflow || to.value > max ||
	    from.value > to.value)
		return -ERANGE;
	*first = (uint64_t)from.value;
	*last = (uint64_t)to.value;
	*text = end + (*end == ',');
	return 0;
}

/* The power of two that this unit stands for, or -EINVAL. */
static int unit_shift(const char *unit)
{
	static const char letters[] = "KMGTkmgt";
	const char *letter;

	if (unit[0] == '\0')
		return 0;
	letter = strchr(letters, unit[0]);
	if (!letter)
		return -EINVAL;
	if (strcmp(unit + 1, "") != 0 && strcmp(unit + 1, "B") != 0 &&
	    strcmp(unit + 1, "iB") != 0)
		return -EINVAL;
	return 10 * (int)((letter - letters) % 4 + 1);
}

int parse_size(const char *text, uint64_t min, uint64_t max, uint64_t *bytes)
{
	struct digits digits = take_digits(text);
	int shift;

	if (digits.end == text)
		return -EINVAL;
	shift = unit_shift(digits.end);
	if (shift < 0)
		return shift;
	if (digits.overflow || digits.value > UINT64_MAX >> shift)
		return -ERANGE;
	digits.value <<= shift;
	if (digits.value < min || digits.value > max)
		return -ERANGE;
	*bytes = (uint64_t)digits.value;
	return 0;
}

/* The letters scale by thousands, and the unit may follow. */
static int take_thousands(const char *text, const char *unit_name, uint64_t max,
			  uint64_t *value)
{
	static const char letters[] = "kMGT";
	struct digits digits = take_digits(text);
	const char *unit = digits.end;
	const char *letter = *unit == 'K' ? letters
			     : *unit != 0 ? strchr(letters, *unit)
					  : NULL;
	unsigned __int128 scale = 1;

	if (letter)
		unit++;
	if (digits.end == text ||
	    (strcmp(unit, "") != 0 && strcmp(unit, unit_name) != 0))
		return -EINVAL;
	for (const char *l = letters; letter && l <= letter; l++)
		scale *= 1000;
	if (digits.overflow || digits.value < 1 || digits.value > max / scale)
		return -ERANGE;
	*value = (uint64_t)(digits.value * scale);
	return 0;
}

int parse_bits(const char *text, uint64_t max, uint64_t *bits)
{
	return take_thousands(text, "bit", max, bits);
}

int parse_count(const char *text, uint64_t max, uint64_t *count)
{
	return take_thousands(text, "", max, count);
}
