// Counts of 256 keys: straight into memory, and with the bins of each block in shared memory, once or in copies.
#include "common.cuh"

__global__ void __launch_bounds__(256) plain(const int *__restrict__ keys, int *counts, size_t n) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(&counts[keys[i]], 1);
}

template <int COPIES, int BLOCK>
__global__ void __launch_bounds__(BLOCK) shared(const int4 *__restrict__ keys, int *counts, size_t n4) {
    __shared__ int bins[COPIES][256 + 1];
    for (int i = threadIdx.x; i < COPIES * 257; i += BLOCK) (&bins[0][0])[i] = 0;
    __syncthreads();
    int *mine = bins[threadIdx.x / 32 % COPIES];
    size_t stride = (size_t)gridDim.x * BLOCK;
    size_t i = (size_t)blockIdx.x * BLOCK + threadIdx.x;
    for (; i + stride < n4; i += 2 * stride) {
        int4 k = __ldcs(&keys[i]), m = __ldcs(&keys[i + stride]);
        atomicAdd(&mine[k.x], 1);
        atomicAdd(&mine[k.y], 1);
        atomicAdd(&mine[k.z], 1);
        atomicAdd(&mine[k.w], 1);
        atomicAdd(&mine[m.x], 1);
        atomicAdd(&mine[m.y], 1);
        atomicAdd(&mine[m.z], 1);
        atomicAdd(&mine[m.w], 1);
    }
    if (i < n4) {
        int4 k = __ldcs(&keys[i]);
        atomicAdd(&mine[k.x], 1);
        atomicAdd(&mine[k.y], 1);
        atomicAdd(&mine[k.z], 1);
        atomicAdd(&mine[k.w], 1);
    }
    __syncthreads();
    for (int bin = threadIdx.x; bin < 256; bin += BLOCK) {
        int sum = 0;
#pragma unroll
        for (int c = 0; c < COPIES; c++) sum += bins[c][bin];
        if (sum) atomicAdd(&counts[bin], sum);
    }
}

template <int COPIES, int BLOCK> static int run(const int *keys, int *counts, size_t n) {
    shared<COPIES, BLOCK><<<processors() * (2048 / BLOCK), BLOCK>>>((const int4 *)keys, counts, n / 4);
    return launched();
}

// Adds to counts; n is a multiple of 4.

ENTRY histogram_plain(const int *keys, int *counts, size_t n) {
    plain<<<blocks_for(n, 256), 256>>>(keys, counts, n);
    return launched();
}
ENTRY histogram_1x256(const int *keys, int *counts, size_t n) { return run<1, 256>(keys, counts, n); }
ENTRY histogram_8x256(const int *keys, int *counts, size_t n) { return run<8, 256>(keys, counts, n); }
ENTRY histogram_1x1024(const int *keys, int *counts, size_t n) { return run<1, 1024>(keys, counts, n); }
ENTRY histogram_8x1024(const int *keys, int *counts, size_t n) { return run<8, 1024>(keys, counts, n); }
