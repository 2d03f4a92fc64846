/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program that checks what it receives: a token goes round the ring of ranks, growing from
 * one byte to a megabyte; then every rank sends to every other. Exits 1 if anything is wrong. With
 * an argument the token goes round for ever.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES_MAX = 1 << 20, ROUNDS = 20, EACH = 3000 };

static uint8_t value(int from, int to, int i)
{
	return (uint8_t)(from * 31 + to * 7 + i);
}

static int ring(int rank, int ranks)
{
	uint8_t *buffer = malloc(BYTES_MAX);
	int wrong = 0;

	for (int bytes = 1; bytes <= BYTES_MAX; bytes *= 4)
		for (int round = 0; round < (bytes < 65536 ? ROUNDS : 2); round++) {
			if (rank == 0) {
				for (int i = 0; i < bytes; i++)
					buffer[i] = value(round, bytes, i);
				MPI_Send(buffer, bytes, MPI_BYTE, 1 % ranks, 1, MPI_COMM_WORLD);
			}
			MPI_Recv(buffer, bytes, MPI_BYTE, (rank + ranks - 1) % ranks, 1,
				 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			for (int i = 0; i < bytes; i++)
				wrong += buffer[i] != value(round, bytes, i);
			if (rank != 0)
				MPI_Send(buffer, bytes, MPI_BYTE, (rank + 1) % ranks, 1,
					 MPI_COMM_WORLD);
		}
	free(buffer);
	return wrong;
}

static int all_to_all(int rank, int ranks)
{
	uint8_t *out = malloc((size_t)ranks * EACH), *in = malloc((size_t)ranks * EACH);
	int wrong = 0;

	for (int to = 0; to < ranks; to++)
		for (int i = 0; i < EACH; i++)
			out[to * EACH + i] = value(rank, to, i);
	MPI_Alltoall(out, EACH, MPI_BYTE, in, EACH, MPI_BYTE, MPI_COMM_WORLD);
	for (int from = 0; from < ranks; from++)
		for (int i = 0; i < EACH; i++)
			wrong += in[from * EACH + i] != value(from, rank, i);
	free(out);
	free(in);
	return wrong;
}

int main(int argc, char **argv)
{
	int rank, ranks, wrong, sum;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	do
		wrong = ring(rank, ranks);
	while (argc > 1 && wrong == 0);
	wrong += all_to_all(rank, ranks);
	MPI_Allreduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (rank == 0)
		printf("%d ranks, %d bytes wrong\n", ranks, sum);
	MPI_Finalize();
	return sum != 0;
}
