// A step of small kernels as a graph: what a replay costs the host, and until its result is there.
#include "common.cuh"
#include <chrono>
#include <vector>

static __global__ void add(int n, const float *x, float *y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + y[i];
}

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Step {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    int kernels, n;
};

static void launch_all(int kernels, int n, const float *x, float *y, cudaStream_t stream) {
    for (int i = 0; i < kernels; i++) add<<<blocks_for(n, 128), 128, 0, stream>>>(n, x, y);
}

ENTRY graph_make(Step **made, int kernels, int n, const float *x, float *y) {
    Step *step = new Step{nullptr, nullptr, nullptr, kernels, n};
    cudaStreamCreateWithFlags(&step->stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(step->stream, cudaStreamCaptureModeThreadLocal);
    launch_all(kernels, n, x, y, step->stream);
    cudaStreamEndCapture(step->stream, &step->graph);
    int error = cudaGraphInstantiate(&step->exec, step->graph, 0);
    *made = step;
    return error ? error : launched();
}

// Each of the following does `count` steps, one by one, and waits for each: mean seconds of the host, and in all.

ENTRY graph_launches(Step *step, int count, const float *x, float *y, double *host, double *total) {
    *host = *total = 0;
    for (int i = 0; i < count; i++) {
        double start = now();
        launch_all(step->kernels, step->n, x, y, step->stream);
        double submitted = now();
        cudaStreamSynchronize(step->stream);
        *host += (submitted - start) / count, *total += (now() - start) / count;
    }
    return launched();
}

ENTRY graph_replays(Step *step, int count, double *host, double *total) {
    *host = *total = 0;
    for (int i = 0; i < count; i++) {
        double start = now();
        cudaGraphLaunch(step->exec, step->stream);
        double submitted = now();
        cudaStreamSynchronize(step->stream);
        *host += (submitted - start) / count, *total += (now() - start) / count;
    }
    return launched();
}

// Every node gets the other pair of arrays each time: x, y and u, v in turn, u and v at last where `count` is even.
ENTRY graph_changes(Step *step, int count, float *x, float *y, float *u, float *v, double *host, double *total) {
    size_t size = step->kernels;
    std::vector<cudaGraphNode_t> nodes(size);
    cudaGraphGetNodes(step->graph, nodes.data(), &size);
    *host = *total = 0;
    for (int i = 0; i < count; i++) {
        float *from = i % 2 ? u : x, *to = i % 2 ? v : y;
        void *arguments[] = {&step->n, &from, &to};
        cudaKernelNodeParams params = {};
        params.func = (void *)add;
        params.gridDim = dim3(blocks_for(step->n, 128));
        params.blockDim = dim3(128);
        params.kernelParams = arguments;
        double start = now();
        for (cudaGraphNode_t node : nodes) cudaGraphExecKernelNodeSetParams(step->exec, node, &params);
        cudaGraphLaunch(step->exec, step->stream);
        double submitted = now();
        cudaStreamSynchronize(step->stream);
        *host += (submitted - start) / count, *total += (now() - start) / count;
    }
    return launched();
}
