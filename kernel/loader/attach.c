/* Attachments to a cgroup, and registration of congestion controls. */
#define _GNU_SOURCE
#include "loader.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>

#include <bpf/bpf.h>

/* Newer than the kernel headers of some distributions. */
#define LINK_FLAG (1U << 13)
#define ATTACH_STRUCT_OPS 44

int open_cgroup(const char *path)
{
	struct statfs system;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		fail(errno == EACCES ? 0 : errno, "--cgroup: %s", path);
	if (fstatfs(fd, &system) || system.f_type != CGROUP2_SUPER_MAGIC)
		fail(0, "--cgroup: %s: is not in a cgroup2 file system", path);
	return fd;
}

void attach_to_cgroup(struct bpf_object *object, const char *part, int cgroup)
{
	struct bpf_program *program;
	bpf_object__for_each_program(program, object)
	{
		if (bpf_program__type(program) == BPF_PROG_TYPE_STRUCT_OPS)
			continue;
		if (!bpf_program__attach_cgroup(program, cgroup))
			fail(errno, "%s: cannot be attached to the cgroup", part);
	}
}

static struct bpf_map *find(struct bpf_object *object, const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	if (!map)
		fail(0, "%s: the object has no such map", name);
	return map;
}

/* Without this flag a registration outlives its process. */
void allow_links(struct bpf_object *object, const char *map)
{
	int error = bpf_map__set_map_flags(find(object, map), LINK_FLAG);
	if (error)
		fail(-error, "%s: flags of the map", map);
}

void attach_control(struct bpf_object *object, const char *name, const char *control)
{
	struct bpf_map *map = find(object, name);
	int error = bpf_map__attach_struct_ops(map) ? 0 : errno;
	/* libbpf creates the link itself from version 1.2 on. Earlier ones only make the map ready. */
	if (!error && libbpf_major_version() == 1 && libbpf_minor_version() < 2 &&
	    bpf_link_create(bpf_map__fd(map), 0, ATTACH_STRUCT_OPS, NULL) < 0)
		error = errno;
	if (error == EEXIST)
		fail(0, "%s: the name of a congestion control is in use on this machine: %s", name, control);
	if (error)
		fail(error, "%s: the congestion control cannot be registered: %s", name, control);
}
