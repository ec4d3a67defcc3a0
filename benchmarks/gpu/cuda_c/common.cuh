// What every file of this folder is built on: C entry points that give a CUDA error code.
#pragma once
#include <cstdint>
#include <cuda_runtime.h>

#define ENTRY extern "C" __attribute__((visibility("default"))) int

static inline int launched() { return (int)cudaGetLastError(); }

static inline int processors() {
    static int count = 0;
    if (count == 0) cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
    return count;
}

static inline unsigned blocks_for(size_t threads, unsigned block) { return (unsigned)((threads + block - 1) / block); }
