/* hostitem.c - one item of a list of hosts: "n[01-16]x[0-12/4]" */
#include "net/hostitem.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

#define NUMBER_DIGITS_MAX 18 /* what is surely below 2^63 */

/* --- messages ------------------------------------------------------------ */

static unsigned line_of(const struct host_source *source, struct span item)
{
	unsigned line = 1;

	for (const char *at = source->text.begin; at < item.begin; at++)
		line += *at == '\n';
	return line;
}

int host_source_complain(const struct host_source *source, struct span item,
			 int error, const char *why)
{
	const int shown_max = 40;
	int shown = (int)MIN(item.end - item.begin, shown_max);
	const char *dots = item.end - item.begin > shown_max ? "..." : "";
	char line[16] = "";

	if (source->file)
		snprintf(line, sizeof(line), ":%u: ", line_of(source, item));
	failure_set(source->failure, EXIT_USAGE, "host list", 0,
		    "%.60s%s'%.*s%s': %s", source->file ? source->file : "",
		    line, shown, item.begin, dots, why);
	return -error;
}

int host_source_check(const struct host_source *source, struct span item,
		      int error)
{
	if (error == -ENOMEM)
		return failure_set(source->failure, EXIT_RESOURCES, "host list",
				   ENOMEM, "");
	return error ? host_source_complain(source, item, -error,
					    "too many hosts")
		     : 0;
}

/* --- brackets ------------------------------------------------------------ */

struct expansion {
	const struct host_source *source;
	struct hostset *set;
	struct span item;
	const char *closing; /* the ']' of an IPv6 address; NULL: none */
	char name[HOSTLIST_NAME_BYTES];
};

struct number {
	uint64_t value;
	int digits;
	bool padded; /* begins with a zero that is not all of it */
};

struct range {
	uint64_t first, last, step;
	int width; /* at least so many digits */
};

static int expand(struct expansion *expansion, const char *at, size_t length);

static int reject(const struct expansion *expansion, const char *why)
{
	return host_source_complain(expansion->source, expansion->item, EINVAL,
				    why);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_name_byte(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z') || (c != '\0' && strchr(".-_:%", c));
}

static bool take_number(const char **at, struct number *number)
{
	const char *begin = *at;

	*number = (struct number){ 0 };
	for (; is_digit(**at); (*at)++) {
		if (++number->digits > NUMBER_DIGITS_MAX)
			return false;
		number->value = 10 * number->value + (uint64_t)(**at - '0');
	}
	number->padded = number->digits > 1 && *begin == '0';
	return number->digits > 0;
}

/* Returns NULL, or what is wrong.  Moves *at, which a ']' is known to follow,
 * behind the number or range. */
static const char *take_range(const char **at, struct range *range)
{
	static const char malformed[] = "want numbers, ranges and steps in "
					"brackets, as [1-3,8,10-20/2]";
	struct number first, last, step = { .value = 1 };

	if (!take_number(at, &first))
		return malformed;
	last = first;
	if (**at == '-') {
		++*at;
		if (!take_number(at, &last))
			return malformed;
		if (**at == '/') {
			++*at;
			if (!take_number(at, &step))
				return malformed;
		}
	}
	if (step.value == 0)
		return "a step of zero";
	if (last.value < first.value)
		return "a range that counts down";
	if ((last.padded && last.digits != first.digits) ||
	    (first.padded && last.digits < first.digits))
		return "a range with two paddings";
	*range = (struct range){
		.first = first.value,
		.last = last.value,
		.step = step.value,
		.width = first.padded ? first.digits : 1,
	};
	return NULL;
}

/* Expand each number of the range, followed by all expansions of the rest. */
static int expand_range(struct expansion *expansion, const struct range *range,
			const char *rest, size_t length)
{
	size_t room = sizeof(expansion->name) - length;
	uint64_t number = range->first;

	for (;;) {
		int digits = snprintf(expansion->name + length, room,
				      "%0*" PRIu64, range->width, number);
		int error;

		if ((size_t)digits >= room)
			return reject(expansion, "too long a name");
		error = expand(expansion, rest, length + (size_t)digits);
		if (error)
			return error;
		if (range->last - number < range->step)
			return 0;
		number += range->step;
	}
}

/* at: behind the '[' */
static int expand_bracket(struct expansion *expansion, const char *at,
			  size_t length)
{
	const char *end = memchr(at, ']', (size_t)(expansion->item.end - at));

	if (!end)
		return reject(expansion, "a '[' without its ']'");
	for (;; at++) {
		struct range range;
		const char *why = take_range(&at, &range);
		int error;

		if (!why && at != end && *at != ',')
			why = "neither ',' nor ']' behind a number";
		if (why)
			return reject(expansion, why);
		error = expand_range(expansion, &range, end + 1, length);
		if (error || at == end)
			return error;
	}
}

static int add_name(struct expansion *expansion)
{
	const struct host_source *source = expansion->source;
	int error = -E2BIG;

	if (source->budget->names_left > 0) {
		source->budget->names_left--;
		error = hostset_add(expansion->set, expansion->name);
	}
	return host_source_check(source, expansion->item, error);
}

/* Append all names that begin with the length bytes in name and go on with an
 * expansion of the item from at on.  The function calls itself once for each
 * bracket, each of which puts a digit into name: so never deeper than a name is
 * long. */
static int expand(struct expansion *expansion, const char *at, size_t length)
{
	for (; at < expansion->item.end && *at != '['; at++) {
		if (!is_name_byte(*at) && at != expansion->closing)
			return reject(expansion,
				      "a character that no host name has");
		if (length == sizeof(expansion->name) - 1)
			return reject(expansion, "too long a name");
		expansion->name[length++] = *at;
	}
	if (at < expansion->item.end)
		return expand_bracket(expansion, at + 1, length);
	expansion->name[length] = '\0';
	return add_name(expansion);
}

/* The bracket that ends the IPv6 address at the beginning of an item; NULL: the
 * item does not begin with one, since no colon is between the brackets. */
static const char *address_closing(struct span item)
{
	bool colon = false;
	int depth = 0;

	for (const char *at = item.begin; at < item.end; at++) {
		depth += (*at == '[') - (*at == ']');
		if (depth <= 0)
			return depth == 0 && colon ? at : NULL;
		colon = colon || *at == ':';
	}
	return NULL;
}

int hostitem_expand(const struct host_source *source, struct span item,
		    struct hostset *set)
{
	struct expansion expansion = {
		.source = source,
		.set = set,
		.item = item,
		.closing = address_closing(item),
	};

	if (item.begin[0] == '-')
		return reject(&expansion, "a name cannot begin with '-'");
	if (!expansion.closing)
		return expand(&expansion, item.begin, 0);
	expansion.name[0] = '[';
	return expand(&expansion, item.begin + 1, 1);
}
