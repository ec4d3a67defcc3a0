// Memory, time on the device, and what events and allocations cost the host.
#include "common.cuh"
#include <chrono>

static cudaEvent_t began, ended;

static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ENTRY rt_allocate(void **pointer, size_t bytes) { return cudaMalloc(pointer, bytes); }
ENTRY rt_release(void *pointer) { return cudaFree(pointer); }
ENTRY rt_upload(void *to, const void *from, size_t bytes) { return cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice); }
ENTRY rt_download(void *to, const void *from, size_t bytes) {
    return cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost);
}
ENTRY rt_clear(void *pointer, int byte, size_t bytes) { return cudaMemset(pointer, byte, bytes); }
ENTRY rt_synchronize() { return cudaDeviceSynchronize(); }
extern "C" const char *rt_message(int error) { return cudaGetErrorString((cudaError_t)error); }

ENTRY rt_begin() {
    if (!began) {
        cudaEventCreate(&began);
        cudaEventCreate(&ended);
    }
    return cudaEventRecord(began, 0);
}

ENTRY rt_end(float *milliseconds) {
    cudaEventRecord(ended, 0);
    int error = cudaEventSynchronize(ended);
    return error ? error : (int)cudaEventElapsedTime(milliseconds, began, ended);
}

// Each of the following gives the seconds that one of `count` takes the host.

ENTRY rt_event(int count, double *seconds) {
    static cudaStream_t here, there;
    static cudaEvent_t event;
    if (!event) {
        cudaStreamCreateWithFlags(&here, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&there, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    }
    double start = now();
    for (int i = 0; i < count; i++) {
        cudaEventRecord(event, here);
        cudaStreamWaitEvent(there, event, 0);
    }
    *seconds = (now() - start) / count;
    return cudaDeviceSynchronize();
}

ENTRY rt_event_host(int count, double *seconds) {
    static cudaStream_t stream;
    static cudaEvent_t event;
    if (!event) {
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    }
    double start = now();
    for (int i = 0; i < count; i++) {
        cudaEventRecord(event, stream);
        cudaEventSynchronize(event);
    }
    *seconds = (now() - start) / count;
    return launched();
}

ENTRY rt_allocate_async(int count, size_t bytes, int clear, double *seconds) {
    static bool kept = false;
    if (!kept) {
        cudaMemPool_t pool;
        uint64_t all = UINT64_MAX;
        cudaDeviceGetDefaultMemPool(&pool, 0);
        cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all);
        kept = true;
    }
    double start = now();
    for (int i = 0; i < count; i++) {
        void *pointer = nullptr;
        int error = cudaMallocAsync(&pointer, bytes, 0);
        if (error) return error;
        if (clear) cudaMemsetAsync(pointer, 0, bytes, 0);
        cudaFreeAsync(pointer, 0);
    }
    *seconds = (now() - start) / count;
    return cudaDeviceSynchronize();
}
