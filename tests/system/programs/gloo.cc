// SPDX-License-Identifier: BSD-3-Clause
//
// One rank of a Gloo job on its ibverbs transport: sums an array over all ranks, again and again,
// and looks at every element.
//
// usage: gloo FOLDER RANK SIZE DEVICE. FOLDER: empty, where the ranks find each other.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <gloo/allreduce_ring_chunked.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

static const int gid_index = 1, port = 1, rounds = 20;
static const size_t elements = 100000;

// The right sum of element i over all ranks.
static float sum_of(size_t i, int round, int size)
{
	return float(size * (i % 7 + round) + size * (size - 1) / 2);
}

static size_t wrong(const std::vector<float> &data, int round, int size)
{
	size_t n = 0;

	for (size_t i = 0; i < data.size(); i++)
		n += data[i] != sum_of(i, round, size);
	return n;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	int rank = atoi(argv[2]), size = atoi(argv[3]);
	size_t errors = 0;
	gloo::transport::ibverbs::attr attr = {argv[4], port, gid_index};
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	gloo::rendezvous::FileStore store(argv[1]);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
	context->connectFullMesh(store, device);

	std::vector<float> data(elements);
	std::vector<float *> arrays{data.data()};
	gloo::AllreduceRingChunked<float> sum(context, arrays, int(elements));
	for (int round = 0; round < rounds; round++) {
		for (size_t i = 0; i < elements; i++)
			data[i] = float(rank + i % 7 + round);
		sum.run();
		errors += wrong(data, round, size);
	}
	printf("rank %d: %zu elements wrong\n", rank, errors);
	fflush(stdout);
	// Gloo aborts a rank whose peer goes while it still sends: all of them have to be done.
	store.set("done" + std::to_string(rank), std::vector<char>{1});
	for (int other = 0; other < size; other++)
		store.get("done" + std::to_string(other));
	_Exit(errors != 0);
}
