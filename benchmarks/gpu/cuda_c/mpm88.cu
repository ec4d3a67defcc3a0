// The material point method of qp_like/mpm88.py: four launches a step, sums on the grid by atomic additions.
#include "common.cuh"

#define GRID 128
#define BOUND 3

static constexpr float DX = 1.0f / GRID, DT = 2e-4f, VOLUME = (DX * 0.5f) * (DX * 0.5f), MASS = VOLUME;
static constexpr float GRAVITY = 9.8f, STIFFNESS = 400.0f;
static constexpr float STRESS = -DT * 4.0f * STIFFNESS * VOLUME * GRID * GRID;

struct Near {
    int bx, by;
    float fx, fy, wx[3], wy[3];
};

__device__ __forceinline__ Near near(float2 x) {
    Near m;
    float sx = x.x * GRID, sy = x.y * GRID;
    m.bx = (int)(sx - 0.5f), m.by = (int)(sy - 0.5f);
    m.fx = sx - m.bx, m.fy = sy - m.by;
    float f = m.fx;
    m.wx[0] = 0.5f * (1.5f - f) * (1.5f - f), m.wx[1] = 0.75f - (f - 1.0f) * (f - 1.0f);
    m.wx[2] = 0.5f * (f - 0.5f) * (f - 0.5f);
    f = m.fy;
    m.wy[0] = 0.5f * (1.5f - f) * (1.5f - f), m.wy[1] = 0.75f - (f - 1.0f) * (f - 1.0f);
    m.wy[2] = 0.5f * (f - 0.5f) * (f - 0.5f);
    return m;
}

__global__ void clear(float2 *grid_v, float *grid_m) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    grid_v[at] = make_float2(0.0f, 0.0f);
    grid_m[at] = 0.0f;
}

__global__ void to_grid(const float2 *__restrict__ x, const float2 *__restrict__ v, const float4 *__restrict__ C, const float *__restrict__ J, float2 *grid_v, float *grid_m, int n) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    Near m = near(x[p]);
    float4 c = C[p];
    float2 u = v[p];
    float stress = STRESS * (J[p] - 1.0f);
    float a00 = stress + MASS * c.x, a01 = MASS * c.y, a10 = MASS * c.z, a11 = stress + MASS * c.w;
#pragma unroll
    for (int i = 0; i < 3; i++) {
#pragma unroll
        for (int j = 0; j < 3; j++) {
            float dx = (i - m.fx) * DX, dy = (j - m.fy) * DX, weight = m.wx[i] * m.wy[j];
            int at = (m.bx + i) * GRID + m.by + j;
            atomicAdd(&grid_v[at].x, weight * (MASS * u.x + a00 * dx + a01 * dy));
            atomicAdd(&grid_v[at].y, weight * (MASS * u.y + a10 * dx + a11 * dy));
            atomicAdd(&grid_m[at], weight * MASS);
        }
    }
}

__global__ void on_grid(float2 *grid_v, const float *__restrict__ grid_m) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, i = at / GRID, j = at % GRID;
    float2 u = grid_v[at];
    float mass = grid_m[at];
    if (mass > 0.0f) u.x /= mass, u.y /= mass;
    u.y -= DT * GRAVITY;
    if (i < BOUND && u.x < 0.0f) u.x = 0.0f;
    if (i > GRID - BOUND && u.x > 0.0f) u.x = 0.0f;
    if (j < BOUND && u.y < 0.0f) u.y = 0.0f;
    if (j > GRID - BOUND && u.y > 0.0f) u.y = 0.0f;
    grid_v[at] = u;
}

__global__ void to_particles(float2 *x, float2 *v, float4 *C, float *J, const float2 *__restrict__ grid_v, int n) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    float2 at_x = x[p];
    Near m = near(at_x);
    float2 u = make_float2(0.0f, 0.0f);
    float4 c = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < 3; i++) {
#pragma unroll
        for (int j = 0; j < 3; j++) {
            float dx = (i - m.fx) * DX, dy = (j - m.fy) * DX, weight = m.wx[i] * m.wy[j];
            float2 g = grid_v[(m.bx + i) * GRID + m.by + j];
            float scaled = 4.0f * GRID * GRID * weight;
            u.x += weight * g.x;
            u.y += weight * g.y;
            c.x += scaled * g.x * dx;
            c.y += scaled * g.x * dy;
            c.z += scaled * g.y * dx;
            c.w += scaled * g.y * dy;
        }
    }
    v[p] = u;
    x[p] = make_float2(at_x.x + DT * u.x, at_x.y + DT * u.y);
    J[p] *= 1.0f + DT * (c.x + c.w);
    C[p] = c;
}

__global__ void begin(float2 *v, float4 *C, float *J, int n) {
    int p = blockIdx.x * blockDim.x + threadIdx.x;
    if (p >= n) return;
    v[p] = make_float2(0.0f, -1.0f);
    C[p] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    J[p] = 1.0f;
}

ENTRY mpm88_begin(float2 *v, float4 *C, float *J, int n) {
    begin<<<blocks_for(n, 128), 128>>>(v, C, J, n);
    return launched();
}

static void steps_on(cudaStream_t stream, float2 *x, float2 *v, float4 *C, float *J, float2 *grid_v, float *grid_m, int n, int steps) {
    for (int s = 0; s < steps; s++) {
        clear<<<GRID * GRID / 128, 128, 0, stream>>>(grid_v, grid_m);
        to_grid<<<blocks_for(n, 64), 64, 0, stream>>>(x, v, C, J, grid_v, grid_m, n);
        on_grid<<<GRID * GRID / 128, 128, 0, stream>>>(grid_v, grid_m);
        to_particles<<<blocks_for(n, 64), 64, 0, stream>>>(x, v, C, J, grid_v, n);
    }
}

ENTRY mpm88_steps(float2 *x, float2 *v, float4 *C, float *J, float2 *grid_v, float *grid_m, int n, int steps) {
    steps_on(0, x, v, C, J, grid_v, grid_m, n, steps);
    return launched();
}

// A graph of so many steps, to be launched by mpm88_replay.
ENTRY mpm88_graph(cudaGraphExec_t *made, float2 *x, float2 *v, float4 *C, float *J, float2 *grid_v, float *grid_m, int n, int steps) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    steps_on(stream, x, v, C, J, grid_v, grid_m, n, steps);
    cudaStreamEndCapture(stream, &graph);
    int error = cudaGraphInstantiate(made, graph, 0);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    return error ? error : launched();
}

ENTRY mpm88_replay(cudaGraphExec_t graph) { return cudaGraphLaunch(graph, 0); }
