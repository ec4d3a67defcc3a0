// A map whose time is that of the functions.
#include "common.cuh"

__device__ __forceinline__ float f(float v) { return sinf(v) * cosf(v) + expf(-v) + logf(v + 1.0f) + powf(v, 0.7f); }

__global__ void __launch_bounds__(256) map1(const float *__restrict__ x, float *__restrict__ y, size_t n) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = f(x[i]);
}

__global__ void __launch_bounds__(256) map4(const float4 *__restrict__ x, float4 *__restrict__ y, size_t n4) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i < n4) {
        float4 v = x[i];
        y[i] = make_float4(f(v.x), f(v.y), f(v.z), f(v.w));
    }
}

// n is a multiple of 4.

ENTRY transcendental_1(const float *x, float *y, size_t n) {
    map1<<<blocks_for(n, 256), 256>>>(x, y, n);
    return launched();
}
ENTRY transcendental_4(const float *x, float *y, size_t n) {
    map4<<<blocks_for(n / 4, 256), 256>>>((const float4 *)x, (float4 *)y, n / 4);
    return launched();
}
