/* SPDX-License-Identifier: GPL-2.0 */
/* Messages of protobuf: numbered fields. */
#ifndef STACKMAP_PROTO_H
#define STACKMAP_PROTO_H

#include "util.h"

struct bytes {
	char	*data;
	size_t	len;
};

void put_varint(struct bytes *b, u64 n);
void put_value(struct bytes *b, u32 field, u64 n);
void put_number(struct bytes *b, u32 field, u64 n);
void put_message(struct bytes *b, u32 field, struct bytes *message);
void put_string(struct bytes *b, u32 field, const char *s, struct bytes *utf8);

#endif
