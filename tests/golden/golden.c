/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads classic pcap files as they are written on a little-endian machine. Tests only. */
#include "golden.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FILE_HEADER_BYTES = 24,
	RECORD_HEADER_BYTES = 16,
	LINKTYPE_ETHERNET = 1,
};

static uint32_t get_le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The whole file in memory, NULL when it cannot be had. */
static uint8_t *read_file(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	uint8_t *data = NULL;
	long size;

	if (!file)
		return NULL;
	if (!fseek(file, 0, SEEK_END) && (size = ftell(file)) > 0 && !fseek(file, 0, SEEK_SET)) {
		*bytes = (size_t)size;
		data = malloc(*bytes);
		if (data && fread(data, 1, *bytes, file) != *bytes) {
			free(data);
			data = NULL;
		}
	}
	fclose(file);
	return data;
}

long golden_walk(const uint8_t *file, size_t bytes, struct golden_frame *frames)
{
	size_t at = FILE_HEADER_BYTES;
	uint32_t length;
	long n = 0;

	if (bytes < FILE_HEADER_BYTES || get_le32(file + 20) != LINKTYPE_ETHERNET)
		return -EINVAL;
	if (get_le32(file) != 0xa1b2c3d4 && get_le32(file) != 0xa1b23c4d)
		return -EINVAL;
	while (bytes - at >= RECORD_HEADER_BYTES) {
		length = get_le32(file + at + 8);
		if (length != get_le32(file + at + 12))
			return -EINVAL;
		at += RECORD_HEADER_BYTES;
		if (length > bytes - at)
			return -EINVAL;
		if (frames)
			frames[n] = (struct golden_frame){file + at, length};
		at += length;
		n++;
	}
	return at == bytes ? n : -EINVAL;
}

static int load_capture(struct golden_capture *capture, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t bytes = 0;
	long n;

	snprintf(capture->name, sizeof(capture->name), "%s", slash ? slash + 1 : path);
	capture->file = read_file(path, &bytes);
	if (!capture->file)
		return -EIO;
	n = golden_walk(capture->file, bytes, NULL);
	if (n < 0)
		return (int)n;
	capture->count = (size_t)n;
	capture->frames = calloc(capture->count + 1, sizeof(*capture->frames));
	if (!capture->frames)
		return -ENOMEM;
	golden_walk(capture->file, bytes, capture->frames);
	return 0;
}

int golden_load(struct golden *golden, const char *directory)
{
	char pattern[4096];
	glob_t found;
	int error = 0;
	size_t i;

	memset(golden, 0, sizeof(*golden));
	snprintf(pattern, sizeof(pattern), "%s/*.pcap", directory);
	if (glob(pattern, 0, NULL, &found))
		return -ENOENT;
	golden->captures = calloc(found.gl_pathc, sizeof(*golden->captures));
	if (!golden->captures)
		error = -ENOMEM;
	for (i = 0; !error && i < found.gl_pathc; i++) {
		golden->count = i + 1;
		error = load_capture(&golden->captures[i], found.gl_pathv[i]);
		golden->frame_count += golden->captures[i].count;
	}
	globfree(&found);
	if (error)
		golden_free(golden);
	return error;
}

void golden_free(struct golden *golden)
{
	size_t i;

	for (i = 0; i < golden->count; i++) {
		free(golden->captures[i].frames);
		free(golden->captures[i].file);
	}
	free(golden->captures);
	memset(golden, 0, sizeof(*golden));
}
