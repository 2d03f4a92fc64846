/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_H
#define RUN_H
/*
 * softhca run [-v] [--socket PATH] [--libdir FOLDER] [--] PROGRAM [ARGUMENT]...
 *
 * Executes PROGRAM with the environment in which it, and whatever it starts, finds the drop-in
 * libibverbs.so.1 and the daemon. argv[0] is "run". Returns only on failure, with env(1)'s exit
 * codes: 125 our own failure, 126 PROGRAM cannot be run, 127 it does not exist.
 */
int run_program(int argc, char **argv);

#endif
