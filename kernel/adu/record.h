/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The datagram that tells the demand of a connection to the switch. Records are cumulative, so a lost one does no harm.
 * Integers are little endian; addresses and ports are in network byte order. */
#ifndef LEEWARD_ADU_RECORD_H
#define LEEWARD_ADU_RECORD_H

#include <linux/types.h>

#define ADU_MAGIC 0x4c574144
#define ADU_VERSION 1

enum { ADU_WRITTEN = 1, ADU_CLOSED = 2 };

struct adu_record {
	__u32 magic;
	__u8 version;
	__u8 kind;
	__u16 zero;
	__u32 local_address;
	__u32 remote_address;
	__u16 local_port;
	__u16 remote_port;
	__u32 zero_too;
	/* Bytes that the application has written on the connection so far. */
	__u64 written;
};

#endif
