/* BPF objects: opening with a name of the congestion control, global variables, loading, and errors. */
#define _GNU_SOURCE
#include "loader.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#define PLACEHOLDER "@LEEWARD-NAME@"
#define NAME_SIZE 16

/* libbpf explains failures in warnings only. The first one of a failure is the nearest to its cause. */
static char warning[400];

static int keep_warning(enum libbpf_print_level level, const char *format, va_list arguments)
{
	const char *debug = getenv("LEEWARD_BPF_DEBUG");
	if (debug && *debug)
		return vfprintf(stderr, format, arguments);
	if (level == LIBBPF_WARN && !*warning) {
		vsnprintf(warning, sizeof warning, format, arguments);
		warning[strcspn(warning, "\n")] = 0;
	}
	return 0;
}

void listen_to_libbpf(void)
{
	libbpf_set_print(keep_warning);
}

void fail(int error, const char *format, ...)
{
	va_list arguments;
	fputs("leeward-bpf: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	if (error == EPERM || error == EACCES)
		fputs(": no permission: root, or CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON", stderr);
	else if (error)
		fprintf(stderr, ": %s", strerror(error));
	if (*warning)
		fprintf(stderr, " (%s)", warning);
	fputc('\n', stderr);
	exit(1);
}

static char *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rbe");
	if (!file)
		fail(errno, "%s", path);
	char *image = NULL;
	size_t room = 0, length = 0, count;
	do {
		room += 1 << 16;
		image = realloc(image, room);
		if (!image)
			fail(errno, "%s", path);
		count = fread(image + length, 1, room - length, file);
		length += count;
	} while (length == room);
	if (ferror(file))
		fail(EIO, "%s", path);
	fclose(file);
	*size = length;
	return image;
}

/* The name is part of the initial value of a map, which libbpf before 1.4 does not show. So it is replaced in the
 * file's image. */
static void rename_control(char *image, size_t size, const char *path, const char *name)
{
	char *place = memmem(image, size, PLACEHOLDER, sizeof PLACEHOLDER);
	if (!place || (size_t)(place - image) + NAME_SIZE > size)
		fail(0, "%s: has no place for the name of a congestion control", path);
	memset(place, 0, NAME_SIZE);
	memcpy(place, name, strlen(name));
}

struct bpf_object *open_object(const char *folder, const char *file, const char *name)
{
	char path[PATH_MAX];
	size_t size;
	snprintf(path, sizeof path, "%s/%s", folder, file);
	char *image = read_file(path, &size);
	if (name)
		rename_control(image, size, path, name);
	LIBBPF_OPTS(bpf_object_open_opts, options, .object_name = "leeward");
	struct bpf_object *object = bpf_object__open_mem(image, size, &options);
	if (!object)
		fail(errno, "%s: cannot be opened", path);
	*warning = 0;
	return object;
}

void load_object(struct bpf_object *object, const char *part)
{
	int error = bpf_object__load(object);
	if (error == -EINVAL && strstr(warning, "struct_ops"))
		fail(-error, "%s: no struct_ops links, which Linux has from 6.4 on; --timers and --adu do not use them", part);
	if (error)
		fail(-error, "%s: cannot be loaded", part);
	*warning = 0;
}

/* The offset of a variable in its section, or -1. */
static long offset_of(struct bpf_object *object, const char *section, const char *name, size_t size)
{
	const struct btf *btf = bpf_object__btf(object);
	int id = btf__find_by_name_kind(btf, section, BTF_KIND_DATASEC);
	const struct btf_type *type = id > 0 ? btf__type_by_id(btf, (__u32)id) : NULL;
	for (int i = 0; type && i < btf_vlen(type); i++) {
		const struct btf_var_secinfo *place = btf_var_secinfos(type) + i;
		const char *found = btf__name_by_offset(btf, btf__type_by_id(btf, place->type)->name_off);
		if (!strcmp(found, name) && place->size == size)
			return place->offset;
	}
	return -1;
}

void *constant(struct bpf_object *object, const char *name, size_t size)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	size_t length = 0;
	char *values = map ? (char *)bpf_map__initial_value(map, &length) : NULL;
	long offset = offset_of(object, ".rodata", name, size);
	if (!values || offset < 0 || (size_t)offset + size > length)
		fail(0, "the object has no constant %s", name);
	return values + offset;
}

uint64_t counter(struct bpf_object *object, const char *name)
{
	/* The section is the only element of an array. */
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".bss");
	char values[256];
	uint64_t value;
	__u32 key = 0;
	long offset = offset_of(object, ".bss", name, sizeof value);
	if (!map || offset < 0 || bpf_map__value_size(map) > sizeof values ||
	    bpf_map_lookup_elem(bpf_map__fd(map), &key, values))
		fail(0, "the object has no counter %s", name);
	memcpy(&value, values + offset, sizeof value);
	return value;
}
