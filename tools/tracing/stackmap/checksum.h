/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The file "checksums" of a directory: a line for each file, with its CRC-32, its size and its
 * name. It tells if a file was cut off, damaged, or is of another recording.
 */
#ifndef STACKMAP_CHECKSUM_H
#define STACKMAP_CHECKSUM_H

#include "stackmap.h"

u32 crc32(const void *data, size_t len, u32 crc);
int write_checksums(const char *dir, const char * const *names, size_t nr);
int check_directory(const char *dir);

#endif
