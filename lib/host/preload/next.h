/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PRELOAD_NEXT_H
#define PRELOAD_NEXT_H
/* For files that interpose libc's functions. */
#include <dlfcn.h>

#define SHOWN __attribute__((visibility("default")))

/* The next library's function of that name and type, looked up once. */
#define NEXT(name)                                                                                 \
	({                                                                                         \
		static __typeof__(&(name)) next;                                                   \
		__typeof__(&(name)) found_ = __atomic_load_n(&next, __ATOMIC_RELAXED);             \
                                                                                                   \
		if (!found_) {                                                                     \
			found_ = (__typeof__(&(name)))dlsym(RTLD_NEXT, #name);                     \
			__atomic_store_n(&next, found_, __ATOMIC_RELAXED);                         \
		}                                                                                  \
		found_;                                                                            \
	})

#endif
