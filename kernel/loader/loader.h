/* leeward-bpf: shared declarations. */
#ifndef LEEWARD_LOADER_H
#define LEEWARD_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

/* A decimal number as a fraction. */
struct factor {
	uint32_t numerator, denominator;
};

/* The command line. A part that is not asked for has a null name, or false. */
struct request {
	const char *cgroup;
	const char *objects;
	bool timers;
	int rto_min_us, delack_max_us, initial_window;
	const char *retcp;
	struct factor alpha, beta;
	const char *tdtcp;
	const char *adu;
	long every_us;
};

struct request parse(int count, char **arguments);

/* Prints one line and ends the program. An error number of 0 adds no text. */
void fail(int error, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));

/* objects.c: opening and loading. A name, if not null, replaces the placeholder of the congestion control. */
struct bpf_object *open_object(const char *folder, const char *file, const char *name);
void load_object(struct bpf_object *object, const char *part);
/* A constant of an object, to be set before loading. */
void *constant(struct bpf_object *object, const char *name, size_t size);
/* The current value of a 64-bit variable of a loaded object. */
uint64_t counter(struct bpf_object *object, const char *name);
/* Prints the last warning of libbpf with the next error. */
void listen_to_libbpf(void);

/* attach.c: all of these end with the process. */
int open_cgroup(const char *path);
void attach_to_cgroup(struct bpf_object *object, const char *part, int cgroup);
void allow_links(struct bpf_object *object, const char *map);
void attach_control(struct bpf_object *object, const char *map, const char *name);

/* demand.c */
struct demand;
struct demand *open_demand(struct bpf_object *object, const char *socket);
void send_demand(struct demand *demand);

#endif
