// SPDX-License-Identifier: GPL-2.0
#include "proto.h"

void put_varint(struct bytes *b, u64 n)
{
	for (; n > 0x7f; n >>= 7)
		*APPEND(b->data, b->len) = n | 0x80;
	*APPEND(b->data, b->len) = n;
}

void put_value(struct bytes *b, u32 field, u64 n)
{
	put_varint(b, field << 3);
	put_varint(b, n);
}

/* Most readers take a field that is not there for 0. */
void put_number(struct bytes *b, u32 field, u64 n)
{
	if (n)
		put_value(b, field, n);
}

/* Empties @message, so that the next one can be made in it. */
void put_message(struct bytes *b, u32 field, struct bytes *message)
{
	put_varint(b, field << 3 | 2);
	put_varint(b, message->len);
	b->data = grow(b->data, b->len, message->len, 1);
	if (message->len)
		memcpy(b->data + b->len, message->data, message->len);
	b->len += message->len;
	message->len = 0;
}

/* Strings are UTF-8. Bytes outside of ASCII are written as the character with that number. */
void put_string(struct bytes *b, u32 field, const char *s, struct bytes *utf8)
{
	for (; *s; s++) {
		if (*s & 0x80)
			*APPEND(utf8->data, utf8->len) = 0xc0 | (unsigned char)*s >> 6;
		*APPEND(utf8->data, utf8->len) = *s & 0x80 ? 0x80 | (*s & 0x3f) : *s;
	}
	put_message(b, field, utf8);
}
