// One Jacobi sweep over a square: a thread for each point, and threads that march down 4 columns.
#include "common.cuh"

__global__ void __launch_bounds__(256) sweep_point(const float *__restrict__ a, float *__restrict__ b, int n) {
    int j = blockIdx.x * 32 + threadIdx.x + 1, i = blockIdx.y * 8 + threadIdx.y + 1;
    if (i < n - 1 && j < n - 1) {
        size_t at = (size_t)i * n + j;
        b[at] = 0.25f * (a[at - n] + a[at + n] + a[at - 1] + a[at + 1]);
    }
}

template <int ROWS>
__global__ void __launch_bounds__(256) sweep_march(const float *__restrict__ a, float *__restrict__ b, int n) {
    int j = (blockIdx.x * 256 + threadIdx.x) * 4, first = blockIdx.y * ROWS + 1;
    if (j >= n) return;
    const float *at = a + (size_t)first * n + j;
    float4 up = *(const float4 *)(at - n), here = *(const float4 *)at;
    bool left_edge = j == 0, right_edge = j + 4 == n;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int i = first + r;
        if (i >= n - 1) break;
        float4 down = *(const float4 *)(at + n);
        float left = __shfl_up_sync(0xffffffff, here.w, 1), right = __shfl_down_sync(0xffffffff, here.x, 1);
        if (threadIdx.x % 32 == 0 && !left_edge) left = at[-1];
        if (threadIdx.x % 32 == 31 && !right_edge) right = at[4];
        float4 v;
        v.x = left_edge ? here.x : 0.25f * (up.x + down.x + left + here.y);
        v.y = 0.25f * (up.y + down.y + here.x + here.z);
        v.z = 0.25f * (up.z + down.z + here.y + here.w);
        v.w = right_edge ? here.w : 0.25f * (up.w + down.w + here.z + right);
        *(float4 *)(b + (size_t)i * n + j) = v;
        up = here;
        here = down;
        at += n;
    }
}

template <int ROWS> static int march(const float *a, float *b, int n) {
    sweep_march<ROWS><<<dim3(n / 1024, blocks_for(n - 2, ROWS)), 256>>>(a, b, n);
    return launched();
}

// n is a multiple of 1024; the edge of b, which equals that of a, stays as it is.

ENTRY stencil_point(const float *a, float *b, int n) {
    sweep_point<<<dim3(blocks_for(n - 2, 32), blocks_for(n - 2, 8)), dim3(32, 8)>>>(a, b, n);
    return launched();
}
ENTRY stencil_march_4(const float *a, float *b, int n) { return march<4>(a, b, n); }
ENTRY stencil_march_8(const float *a, float *b, int n) { return march<8>(a, b, n); }
ENTRY stencil_march_16(const float *a, float *b, int n) { return march<16>(a, b, n); }
