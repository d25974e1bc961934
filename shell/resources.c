/* resources.c - what each job is given of its own: pipes, a secret, a cgroup */
#include <unistd.h>

#include "shell/resources.h"
#include "shell/stream.h"

const struct resources resources_none = {
	.out = { -1, -1 },
	.err = { -1, -1 },
	.secret.fd = -1,
	.group.fd = -1,
};

static void close_pair(const int pair[2])
{
	if (pair[0] >= 0)
		close(pair[0]);
	if (pair[1] >= 0)
		close(pair[1]);
}

int resources_make(struct resources *resources, struct jobgroup_pool *groups)
{
	int ret;

	if (resources->made)
		return 0;
	*resources = resources_none;
	ret = stream_make_pipe(resources->out);
	if (ret == 0)
		ret = stream_make_pipe(resources->err);
	if (ret == 0)
		ret = secret_open(&resources->secret);
	if (ret < 0) {
		resources_close(resources, groups);
		return ret;
	}
	resources->group = jobgroup_take(groups);
	resources->made = true;
	return 0;
}

void resources_close(struct resources *resources, struct jobgroup_pool *groups)
{
	close_pair(resources->out);
	close_pair(resources->err);
	secret_close(&resources->secret);
	jobgroup_give(groups, &resources->group);
	*resources = resources_none;
}
