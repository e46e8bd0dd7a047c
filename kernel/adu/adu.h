/* Demand of applications: shared declarations of libleeward_adu.so.
 *
 * Etalon's library tells the switch the sizes of application data units (section 5.2). This one tells the same sums, in
 * cumulative records (record.h), before a writing call can block. */
#ifndef LEEWARD_ADU_H
#define LEEWARD_ADU_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "record.h"

#define EXPORT __attribute__((visibility("default")))

/* The next definition of a function: that of the C library. ADU_REAL(write) declares a pointer `real_write`. */
#define ADU_REAL(name)                                                                                                 \
	static __typeof__(&name) real_##name;                                                                          \
	if (!real_##name)                                                                                              \
	real_##name = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* A TCP connection over IPv4. Connections are in memory that a process shares with the children it forks, because they
 * share the sockets too. */
struct connection;

/* reports.c: the socket to the switch. */
/* Returns false if LEEWARD_ADU_SOCKET is not set. */
bool adu_is_on(void);
/* Never blocks; a full or missing socket of the switch loses the record. */
void adu_report(const struct adu_record *record);
/* True for the library's own descriptor, which no program knows of. */
bool adu_is_own(int fd);
/* Moves the library's own descriptor to another number if it is in a range. */
void adu_make_way(unsigned first, unsigned last);

/* connections.c */
/* The connection of a descriptor, or null. The answer is remembered until adu_forget(). */
struct connection *adu_find(int fd);
/* Adds to the bytes written, or subtracts, and reports the sum. */
void adu_add(struct connection *connection, int64_t bytes);
void adu_closed(struct connection *connection);
/* A descriptor begins or ends. */
void adu_forget(int fd);
void adu_copied(int from, int to);
/* Ends all descriptors from a number to another one. */
void adu_forget_range(unsigned first, unsigned last);
/* False in the child of a vfork(), which borrows the memory of its parent but not its descriptors. */
bool adu_owns_memory(void);

#endif
