// A sum in two launches: partial sums of blocks, then the sum of these.
#include "common.cuh"

__device__ float over_block(float value) {
    __shared__ float sums[32];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < blockDim.x / 32 ? sums[threadIdx.x] : 0.0f;
    if (threadIdx.x < 32) {
#pragma unroll
        for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffff, value, step);
    }
    return value;
}

template <int N> __global__ void __launch_bounds__(256) partial(const float4 *__restrict__ x, float *out, size_t n4) {
    float sum[N] = {};
    size_t stride = (size_t)gridDim.x * (256 * N);
    for (size_t i = (size_t)blockIdx.x * (256 * N) + threadIdx.x; i < n4; i += stride) {
#pragma unroll
        for (int k = 0; k < N; k++) {
            float4 v = __ldcs(&x[i + k * 256]);
            sum[k] += (v.x + v.y) + (v.z + v.w);
        }
    }
    float total = 0.0f;
#pragma unroll
    for (int k = 0; k < N; k++) total += sum[k];
    total = over_block(total);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

__global__ void __launch_bounds__(1024) finish(const float *partials, int count, float *total) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < count; i += 1024) sum += partials[i];
    sum = over_block(sum);
    if (threadIdx.x == 0) *total = sum;
}

template <int N> static int run(const float *x, float *partials, float *total, size_t n, int per_processor) {
    size_t most = n / 4 / (256 * N);
    size_t blocks = (size_t)processors() * per_processor;
    if (blocks > most) blocks = most;
    partial<N><<<blocks, 256>>>((const float4 *)x, partials, n / 4);
    finish<<<1, 1024>>>(partials, (int)blocks, total);
    return launched();
}

// n is a multiple of 8192; partials has room for 64 blocks a multiprocessor.

ENTRY reduction_4x8(const float *x, float *partials, float *total, size_t n) { return run<4>(x, partials, total, n, 8); }
ENTRY reduction_4x32(const float *x, float *partials, float *total, size_t n) {
    return run<4>(x, partials, total, n, 32);
}
ENTRY reduction_8x8(const float *x, float *partials, float *total, size_t n) { return run<8>(x, partials, total, n, 8); }
ENTRY reduction_8x64(const float *x, float *partials, float *total, size_t n) {
    return run<8>(x, partials, total, n, 64);
}
