// Gravity among all pairs of bodies (x, y, z, mass): straight from memory, and by tiles in shared memory.
#include "common.cuh"

#define SOFTENING 1e-3f

__device__ __forceinline__ void attract(float4 p, float4 q, float &ax, float &ay, float &az) {
    float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
    float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING);
    float pull = q.w * inverse * inverse * inverse;
    ax += dx * pull;
    ay += dy * pull;
    az += dz * pull;
}

__global__ void __launch_bounds__(256) plain(const float4 *__restrict__ position, float4 *__restrict__ out, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= n) return;
    float4 p = position[i];
    float ax = 0, ay = 0, az = 0;
#pragma unroll 8
    for (int j = 0; j < n; j++) attract(p, __ldg(&position[j]), ax, ay, az);
    out[i] = make_float4(ax, ay, az, 0.0f);
}

template <int TILE, int BODIES>
__global__ void __launch_bounds__(TILE) tiled(const float4 *__restrict__ position, float4 *__restrict__ out, int n) {
    __shared__ float4 tile[TILE];
    int i = blockIdx.x * TILE * BODIES + threadIdx.x;
    float4 p[BODIES];
    float ax[BODIES] = {}, ay[BODIES] = {}, az[BODIES] = {};
#pragma unroll
    for (int m = 0; m < BODIES; m++) p[m] = position[i + m * TILE];
    for (int first = 0; first < n; first += TILE) {
        tile[threadIdx.x] = position[first + threadIdx.x];
        __syncthreads();
#pragma unroll 32
        for (int j = 0; j < TILE; j++) {
            float4 q = tile[j];
#pragma unroll
            for (int m = 0; m < BODIES; m++) attract(p[m], q, ax[m], ay[m], az[m]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int m = 0; m < BODIES; m++) out[i + m * TILE] = make_float4(ax[m], ay[m], az[m], 0.0f);
}

// n is a multiple of 1024.

ENTRY nbody_plain(const float4 *position, float4 *out, int n) {
    plain<<<blocks_for(n, 256), 256>>>(position, out, n);
    return launched();
}
ENTRY nbody_tiled_128(const float4 *position, float4 *out, int n) {
    tiled<128, 1><<<n / 128, 128>>>(position, out, n);
    return launched();
}
ENTRY nbody_tiled_256(const float4 *position, float4 *out, int n) {
    tiled<256, 1><<<n / 256, 256>>>(position, out, n);
    return launched();
}
ENTRY nbody_tiled_128x2(const float4 *position, float4 *out, int n) {
    tiled<128, 2><<<n / 256, 128>>>(position, out, n);
    return launched();
}
