/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_H
#define RUN_H
/*
 * softhca run [-v] [--socket PATH] [--libdir FOLDER] [--] PROGRAM [ARGUMENT]...
 *
 * Becomes PROGRAM, with the environment in which it, and whatever it starts, finds the drop-in
 * libibverbs.so.1 and the daemon. argv[0] is "run". Returns only when it cannot: the exit code, as
 * env(1) has them: 125 our own failure, 126 PROGRAM cannot be run, 127 it is not there.
 */
int run_program(int argc, char **argv);

#endif
