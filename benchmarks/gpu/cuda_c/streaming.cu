// Loops that memory bounds: copy, saxpy; and the rate of fused multiply-adds, which bounds arithmetic.
#include "common.cuh"

template <int N>
__global__ void __launch_bounds__(256) copy4(const float4 *__restrict__ x, float4 *__restrict__ y) {
    size_t first = (size_t)blockIdx.x * (256 * N) + threadIdx.x;
    float4 v[N];
#pragma unroll
    for (int k = 0; k < N; k++) v[k] = __ldcs(&x[first + k * 256]);
#pragma unroll
    for (int k = 0; k < N; k++) __stcs(&y[first + k * 256], v[k]);
}

__global__ void __launch_bounds__(256) saxpy1(float a, const float *__restrict__ x, float *__restrict__ y, size_t n) {
    size_t i = (size_t)blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

template <int N>
__global__ void __launch_bounds__(256) saxpy4(float a, const float4 *__restrict__ x, float4 *__restrict__ y) {
    size_t first = (size_t)blockIdx.x * (256 * N) + threadIdx.x;
    float4 u[N], v[N];
#pragma unroll
    for (int k = 0; k < N; k++) {
        u[k] = __ldcs(&x[first + k * 256]);
        v[k] = __ldcs(&y[first + k * 256]);
    }
#pragma unroll
    for (int k = 0; k < N; k++) {
        v[k].x = a * u[k].x + v[k].x;
        v[k].y = a * u[k].y + v[k].y;
        v[k].z = a * u[k].z + v[k].z;
        v[k].w = a * u[k].w + v[k].w;
        __stcs(&y[first + k * 256], v[k]);
    }
}

__global__ void __launch_bounds__(256) multiply_adds(float *out, int rounds, float a, float b) {
    float v[16];
#pragma unroll
    for (int k = 0; k < 16; k++) v[k] = (float)(threadIdx.x + k);
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int s = 0; s < 8; s++) {
#pragma unroll
            for (int k = 0; k < 16; k++) v[k] = fmaf(v[k], a, b);
        }
    }
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < 16; k++) sum += v[k];
    if (sum == 12345.678f) out[0] = sum;
}

// n is a multiple of 4096 in all of the following.

ENTRY copy_driver(const float *x, float *y, size_t n) {
    return cudaMemcpyAsync(y, x, n * sizeof(float), cudaMemcpyDeviceToDevice, 0);
}
ENTRY copy_4(const float *x, float *y, size_t n) {
    copy4<1><<<n / 1024, 256>>>((const float4 *)x, (float4 *)y);
    return launched();
}
ENTRY copy_16(const float *x, float *y, size_t n) {
    copy4<4><<<n / 4096, 256>>>((const float4 *)x, (float4 *)y);
    return launched();
}
ENTRY saxpy_plain(float a, const float *x, float *y, size_t n) {
    saxpy1<<<blocks_for(n, 256), 256>>>(a, x, y, n);
    return launched();
}
ENTRY saxpy_4(float a, const float *x, float *y, size_t n) {
    saxpy4<1><<<n / 1024, 256>>>(a, (const float4 *)x, (float4 *)y);
    return launched();
}
ENTRY saxpy_8(float a, const float *x, float *y, size_t n) {
    saxpy4<2><<<n / 2048, 256>>>(a, (const float4 *)x, (float4 *)y);
    return launched();
}

// 2 * 128 * rounds operations of each of the threads, whose number is given back.
ENTRY peak(float *out, int rounds, double *operations) {
    int blocks = processors() * 8;
    multiply_adds<<<blocks, 256>>>(out, rounds, 0.999f, 0.001f);
    *operations = 2.0 * 128.0 * rounds * blocks * 256.0;
    return launched();
}
