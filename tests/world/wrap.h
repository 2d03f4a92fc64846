/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_WORLD_WRAP_H
#define TESTS_WORLD_WRAP_H
/*
 * Stands in for a function that the program is linked with as -Wl,--wrap=name: the body that follows
 * is what its callers get, and may call the real one.
 *
 *	WRAP(int, munmap, void *at, size_t bytes)
 *	{
 *		return __real_munmap(at, bytes);
 *	}
 */
#define WRAP(type, name, ...)                                                                      \
	type __real_##name(__VA_ARGS__);                                                           \
	type __wrap_##name(__VA_ARGS__);                                                           \
	type __wrap_##name(__VA_ARGS__)

#endif
