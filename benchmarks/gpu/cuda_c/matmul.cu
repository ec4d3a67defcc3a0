// Products of square matrices by tiles in shared memory: one element a thread, and 8 x 8 elements a thread.
#include "common.cuh"

template <int T> __global__ void __launch_bounds__(T *T) tiles(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
    __shared__ float a_tile[T][T], b_tile[T][T];
    int i = threadIdx.y, j = threadIdx.x, row = blockIdx.y * T + i, column = blockIdx.x * T + j;
    float total = 0.0f;
    for (int k0 = 0; k0 < n; k0 += T) {
        a_tile[i][j] = a[(size_t)row * n + k0 + j];
        b_tile[i][j] = b[(size_t)(k0 + i) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < T; k++) total += a_tile[i][k] * b_tile[k][j];
        __syncthreads();
    }
    c[(size_t)row * n + column] = total;
}

// A block of 256 threads makes 128 x 128 elements; a thread rows i .. i + 3 and i + 64 .., columns j likewise.
template <int DEPTH>
__global__ void __launch_bounds__(256) registers(const float *__restrict__ a, const float *__restrict__ b, float *__restrict__ c, int n) {
    __shared__ __align__(16) float a_tile[DEPTH][128 + 4], b_tile[DEPTH][128];
    constexpr int LOADS = DEPTH / 8;
    int lane = threadIdx.x, top = blockIdx.y * 128, left = blockIdx.x * 128;
    int i = lane / 16 * 4, j = lane % 16 * 4;
    float total[8][8] = {};
    float4 a_next[LOADS], b_next[LOADS];
    auto fetch = [&](int k0) {
#pragma unroll
        for (int s = 0; s < LOADS; s++) {
            int at = lane + s * 256;
            a_next[s] = *(const float4 *)&a[(size_t)(top + at / (DEPTH / 4)) * n + k0 + at % (DEPTH / 4) * 4];
            b_next[s] = *(const float4 *)&b[(size_t)(k0 + at / 32) * n + left + at % 32 * 4];
        }
    };
    fetch(0);
    for (int k0 = 0; k0 < n; k0 += DEPTH) {
#pragma unroll
        for (int s = 0; s < LOADS; s++) {
            int at = lane + s * 256, r = at / (DEPTH / 4), k = at % (DEPTH / 4) * 4;
            a_tile[k][r] = a_next[s].x;
            a_tile[k + 1][r] = a_next[s].y;
            a_tile[k + 2][r] = a_next[s].z;
            a_tile[k + 3][r] = a_next[s].w;
            *(float4 *)&b_tile[at / 32][at % 32 * 4] = b_next[s];
        }
        __syncthreads();
        if (k0 + DEPTH < n) fetch(k0 + DEPTH);
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float u[8], v[8];
            *(float4 *)&u[0] = *(float4 *)&a_tile[k][i];
            *(float4 *)&u[4] = *(float4 *)&a_tile[k][i + 64];
            *(float4 *)&v[0] = *(float4 *)&b_tile[k][j];
            *(float4 *)&v[4] = *(float4 *)&b_tile[k][j + 64];
#pragma unroll
            for (int p = 0; p < 8; p++) {
#pragma unroll
                for (int q = 0; q < 8; q++) total[p][q] += u[p] * v[q];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 8; p++) {
        float *row = &c[(size_t)(top + i + p % 4 + p / 4 * 64) * n + left + j];
        *(float4 *)row = *(float4 *)&total[p][0];
        *(float4 *)(row + 64) = *(float4 *)&total[p][4];
    }
}

// n is a multiple of 128.

ENTRY matmul_16(const float *a, const float *b, float *c, int n) {
    tiles<16><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n);
    return launched();
}
ENTRY matmul_32(const float *a, const float *b, float *c, int n) {
    tiles<32><<<dim3(n / 32, n / 32), dim3(32, 32)>>>(a, b, c, n);
    return launched();
}
ENTRY matmul_registers_8(const float *a, const float *b, float *c, int n) {
    registers<8><<<dim3(n / 128, n / 128), 256>>>(a, b, c, n);
    return launched();
}
ENTRY matmul_registers_16(const float *a, const float *b, float *c, int n) {
    registers<16><<<dim3(n / 128, n / 128), 256>>>(a, b, c, n);
    return launched();
}
