// Small kernels, and what launching them costs the host.  The kernels have C names: others load them, too.
#include "common.cuh"
#include <chrono>

extern "C" __global__ void launch0(int n) {}

extern "C" __global__ void launch2(int n, float *a, const float *b) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = b[i];
}

extern "C" __global__ void launch8(int n, float *a, const float *b, const float *c, const float *d, const float *e, const float *f, const float *g, const float *h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] = b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i];
}

extern "C" __global__ void add(int n, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + y[i];
}

extern "C" __global__ void spin(int steps, unsigned *states) {
    unsigned state = threadIdx.x;
    for (int s = 0; s < steps; s++) state = state * 1664525u + 1013904223u;
    states[threadIdx.x] = state;
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Each of the following gives the seconds that one of `count` takes the host; p are the arrays.

ENTRY launch_0(int count, float **p, double *seconds) {
    double start = now();
    for (int i = 0; i < count; i++) launch0<<<1, 128>>>(1);
    *seconds = (now() - start) / count;
    return launched();
}

ENTRY launch_2(int count, float **p, double *seconds) {
    double start = now();
    for (int i = 0; i < count; i++) launch2<<<1, 128>>>(1, p[0], p[1]);
    *seconds = (now() - start) / count;
    return launched();
}

ENTRY launch_8(int count, float **p, double *seconds) {
    double start = now();
    for (int i = 0; i < count; i++) launch8<<<1, 128>>>(1, p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
    *seconds = (now() - start) / count;
    return launched();
}

ENTRY step(int kernels, int n, const float *x, float *y) {
    for (int i = 0; i < kernels; i++) add<<<blocks_for(n, 128), 128>>>(n, x, y);
    return launched();
}

// Two kernels of one block, on two streams or on one; waits for them.
ENTRY overlap(int steps, unsigned *first, unsigned *second, int streams) {
    static cudaStream_t here, there;
    if (!here) {
        cudaStreamCreateWithFlags(&here, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking);
    }
    spin<<<1, 32, 0, here>>>(steps, first);
    spin<<<1, 32, 0, streams == 2 ? there : here>>>(steps, second);
    cudaStreamSynchronize(here);
    return cudaStreamSynchronize(there);
}
