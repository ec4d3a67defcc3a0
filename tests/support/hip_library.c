/* A HIP library without a GPU: memory is the host's, work is done at once, and every call is logged with what its
   arguments point to.  The prototypes follow HIP 7's public header; hip-python and quadpy's ctypes table call the same. */

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef LAST
#define LAST 3 /* ends the words that say where a kernel's arguments are */
#endif

typedef struct { uint32_t x, y, z; } dim3;
typedef struct { dim3 blockDim; void **extra; void *func; dim3 gridDim; void **kernelParams; uint32_t sharedMemBytes; } kernel_params;
typedef struct { void *dst; uint32_t elementSize; size_t height, pitch; uint32_t value; size_t width; } memset_params;
typedef struct { void *fn, *userData; } host_params;
typedef struct { int type, id; } location;
typedef struct { location location; int flags; } access_desc;
typedef struct { int allocType, handleTypes; location location; void *security; size_t maxSize; unsigned char reserved[56]; } pool_props;
typedef struct { pool_props poolProps; const access_desc *accessDescs; size_t accessDescCount, bytesize; void *dptr; } alloc_params;
typedef struct { void *errNode; unsigned long long flags; int result; void *uploadStream; } instantiate_params;
typedef struct { void **extSemArray; const char *paramsArray; uint32_t numExtSems; } semaphore_params;
typedef struct { int type; union { int fd; struct { void *handle; const void *name; } win32; } handle; uint32_t flags, reserved[16]; } semaphore_desc;
typedef union { char pad[64]; int priority; } launch_value;

static char text[1 << 20], memory[1 << 20], failing[64];
static size_t used, taken;
static uintptr_t handles;
static int status, version = 70253211, devices = 1;

static int *counter; /* counts the launches of kernels down */
static size_t together = 4; /* how many bytes of a cooperative launch's arguments are told; they are in one block */
static int capturing;

void test_count(int *at) { counter = at; }
void test_together(size_t count) { together = count; }
void test_capturing(int is) { capturing = is; }
void test_clear(void) { used = taken = handles = 0; text[0] = failing[0] = 0; version = 70253211; devices = 1; }
void test_fail(const char *name, int with) { snprintf(failing, sizeof failing, "%s", name); status = with; }
void test_system(int hip, int count) { version = hip; devices = count; }
const char *test_log(void) { return text; }

static void say(const char *format, ...) {
    va_list list;
    va_start(list, format);
    used += vsnprintf(text + used, sizeof text - used, format, list);
    va_end(list);
}

static void bytes(const void *from, size_t count) {
    say(" [");
    for (size_t i = 0; from && i < count; i++) say("%02x", ((const unsigned char *)from)[i]);
    say("]");
}

/* Inside this library's memory, an address is told by its place there. */
static void word(uint64_t value) {
    uint64_t place = value - (uintptr_t)memory;
    if (place < sizeof memory) say(" memory+%llx", (unsigned long long)place); else say(" %llx", (unsigned long long)value);
}

static int done(const char *name) {
    say("\n");
    return strcmp(name, failing) ? 0 : status;
}

static void *handle(void) { return (void *)(0x1000 * ++handles); }

static void *take(size_t count) {
    void *found = memory + taken;
    taken += (count + 63) / 64 * 64;
    return found;
}

#define W(x) word((uint64_t)(uintptr_t)(x))
#define BEGIN say("%s", __func__)
#define END return done(__func__)
#define CALL(name, parameters, log, act) \
    int name parameters { BEGIN; log; say("\n"); if (!strcmp(failing, __func__)) return status; act; return 0; }
#define DEPENDENCIES W(graph), bytes(after, 8 * count)
#define NODE(name, more, log) \
    CALL(name, (void **node, void *graph, void **after, size_t count more), (DEPENDENCIES, log), *node = handle())
#define AND ,

CALL(hipRuntimeGetVersion, (int *out), (void)0, *out = version)
CALL(hipGetDeviceCount, (int *out), (void)0, *out = devices; if (!devices) return 100)
CALL(hipSetDevice, (int device), W(device), (void)0)
CALL(hipGetDevice, (int *out), (void)0, *out = 0)
CALL(hipDeviceGetAttribute, (int *out, int attribute, int device), (W(attribute), W(device)), *out = 100000)
CALL(hipDeviceSynchronize, (void), (void)0, (void)0)
CALL(hipMemGetInfo, (size_t *left, size_t *all), (void)0, (*left = sizeof memory - taken, *all = sizeof memory))
CALL(hipDeviceGetStreamPriorityRange, (int *least, int *greatest), (void)0, (*least = 1, *greatest = -1))
CALL(hipStreamCreateWithPriority, (void **out, unsigned flags, int priority), (W(flags), say(" %d", priority)), *out = handle())
CALL(hipExtStreamCreateWithCUMask, (void **out, unsigned words, const unsigned *mask), bytes(mask, 4 * words), *out = handle())
CALL(hipStreamDestroy, (void *stream), W(stream), (void)0)
CALL(hipStreamSynchronize, (void *stream), W(stream), (void)0)
CALL(hipStreamQuery, (void *stream), W(stream), (void)0)
CALL(hipStreamWaitEvent, (void *stream, void *event, unsigned flags), (W(stream), W(event), W(flags)), (void)0)
CALL(hipStreamGetDevice, (void *stream, int *out), W(stream), *out = 0)
CALL(hipEventCreateWithFlags, (void **out, unsigned flags), W(flags), *out = handle())
CALL(hipEventDestroy, (void *event), W(event), (void)0)
CALL(hipEventRecord, (void *event, void *stream), (W(event), W(stream)), (void)0)
CALL(hipEventSynchronize, (void *event), W(event), (void)0)
CALL(hipEventQuery, (void *event), W(event), (void)0)
CALL(hipStreamIsCapturing, (void *stream, int *out), W(stream), *out = capturing)
CALL(hipEventElapsedTime, (float *out, void *start, void *end), (W(start), W(end)), *out = 1.5f)
CALL(hipMalloc, (void **out, size_t count), W(count), *out = take(count))
CALL(hipFree, (void *at), W(at), (void)0)
CALL(hipMallocAsync, (void **out, size_t count, void *stream), (W(count), W(stream)), *out = take(count))
CALL(hipFreeAsync, (void *at, void *stream), (W(at), W(stream)), (void)0)
CALL(hipHostMalloc, (void **out, size_t count, unsigned flags), (W(count), W(flags)), *out = take(count))
CALL(hipHostFree, (void *at), W(at), (void)0)
CALL(hipMemcpyHtoDAsync, (void *to, void *from, size_t count, void *stream), (W(to), W(from), W(count), W(stream)), memcpy(to, from, count))
CALL(hipMemcpyHtoD, (void *to, void *from, size_t count), (W(to), W(from), W(count)), memcpy(to, from, count))
CALL(hipMemcpyDtoHAsync, (void *to, void *from, size_t count, void *stream), (W(to), W(from), W(count), W(stream)), memcpy(to, from, count))
CALL(hipMemcpyDtoDAsync, (void *to, void *from, size_t count, void *stream), (W(to), W(from), W(count), W(stream)), memcpy(to, from, count))
CALL(hipMemsetD8Async, (void *to, unsigned char value, size_t count, void *stream), (W(to), W(value), W(count), W(stream)), memset(to, value, count))
CALL(hipMemsetD16Async, (void *to, unsigned short value, size_t count, void *stream), (W(to), W(value), W(count), W(stream)), while (count--) ((unsigned short *)to)[count] = value)
CALL(hipMemsetD32Async, (void *to, unsigned value, size_t count, void *stream), (W(to), W(value), W(count), W(stream)), while (count--) ((unsigned *)to)[count] = value)
CALL(hipDeviceGetDefaultMemPool, (void **out, int device), W(device), *out = (void *)0x900)
CALL(hipMemPoolSetAttribute, (void *pool, int attribute, void *value), (W(pool), W(attribute), bytes(value, 8)), (void)0)
CALL(hipMemPoolTrimTo, (void *pool, size_t least), (W(pool), W(least)), (void)0)
CALL(hipModuleLoadData, (void **out, const char *image), say(" %s", image), *out = handle())
CALL(hipModuleGetFunction, (void **out, void *module, const char *name), (W(module), say(" %s", name)), *out = handle())
CALL(hipModuleUnload, (void *module), W(module), (void)0)
CALL(hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, (int *out, void *function, int threads, size_t shared), (W(function), W(threads), W(shared)), *out = 8)

static void extra(void **words) {
    if (words && words[0] == (void *)1 && words[2] == (void *)2 && words[4] == (void *)LAST) bytes(words[1], *(size_t *)words[3]);
    else say(words ? " wrong words" : " none");
}

static void grid(unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared) {
    say(" <%u %u %u> <%u %u %u> %u", gx, gy, gz, bx, by, bz, shared);
}

CALL(hipModuleLaunchKernel,
     (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **words),
     (W(f), grid(gx, gy, gz, bx, by, bz, shared), W(stream), W(params), extra(words)), if (counter) --*counter)
CALL(hipModuleLaunchCooperativeKernel,
     (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params),
     (W(f), grid(gx, gy, gz, bx, by, bz, shared), W(stream), bytes(params[0], together)), (void)0)

static void kernel(const kernel_params *p) {
    W(p->func);
    grid(p->gridDim.x, p->gridDim.y, p->gridDim.z, p->blockDim.x, p->blockDim.y, p->blockDim.z, p->sharedMemBytes);
    W(p->kernelParams);
    extra(p->extra);
}

static void semaphores(const semaphore_params *p) {
    bytes(p->extSemArray, 8 * p->numExtSems);
    for (unsigned i = 0; i < p->numExtSems; i++) bytes(p->paramsArray + 144 * i, 8);
}

#define FILL (W(p->dst), W(p->elementSize), W(p->height), W(p->pitch), W(p->value), W(p->width))
#define COPY (W(to), W(from), W(n), W(kind))
#define SET(name, more, log) CALL(name, (void *exec, void *node more), (W(exec), W(node), log), (void)0)

CALL(hipGraphCreate, (void **out, unsigned flags), W(flags), *out = handle())
CALL(hipGraphDestroy, (void *graph), W(graph), (void)0)
NODE(hipGraphAddKernelNode, AND const kernel_params *p, kernel(p))
NODE(hipGraphAddMemcpyNode1D, AND void *to AND void *from AND size_t n AND int kind, COPY)
NODE(hipGraphAddMemsetNode, AND const memset_params *p, FILL)
NODE(hipGraphAddHostNode, AND const host_params *p, (W(p->fn), W(p->userData)))
NODE(hipGraphAddEmptyNode, , (void)0)
NODE(hipGraphAddChildGraphNode, AND void *child, W(child))
NODE(hipGraphAddEventRecordNode, AND void *event, W(event))
NODE(hipGraphAddEventWaitNode, AND void *event, W(event))
NODE(hipGraphAddMemFreeNode, AND void *at, W(at))
NODE(hipGraphAddExternalSemaphoresSignalNode, AND const semaphore_params *p, semaphores(p))
NODE(hipGraphAddExternalSemaphoresWaitNode, AND const semaphore_params *p, semaphores(p))
CALL(hipGraphAddMemAllocNode, (void **node, void *graph, void **after, size_t count, alloc_params *p),
     (DEPENDENCIES, bytes(&p->poolProps, sizeof p->poolProps), bytes(p->accessDescs, 12 * p->accessDescCount), W(p->bytesize)),
     (*node = handle(), p->dptr = take(p->bytesize)))
CALL(hipGraphKernelNodeSetAttribute, (void *node, int which, const launch_value *v), (W(node), W(which), say(" %d", v->priority)), (void)0)
CALL(hipGraphInstantiateWithFlags, (void **out, void *graph, unsigned long long flags), (W(graph), W(flags)), *out = handle())
CALL(hipGraphInstantiateWithParams, (void **out, void *graph, instantiate_params *p), (W(graph), W(p->flags), W(p->uploadStream)), *out = handle())
CALL(hipGraphExecDestroy, (void *exec), W(exec), (void)0)
CALL(hipGraphUpload, (void *exec, void *stream), (W(exec), W(stream)), (void)0)
CALL(hipGraphLaunch, (void *exec, void *stream), (W(exec), W(stream)), (void)0)
SET(hipGraphExecKernelNodeSetParams, AND const kernel_params *p, kernel(p))
SET(hipGraphExecMemcpyNodeSetParams1D, AND void *to AND void *from AND size_t n AND int kind, COPY)
SET(hipGraphExecMemsetNodeSetParams, AND const memset_params *p, FILL)
SET(hipGraphExecHostNodeSetParams, AND const host_params *p, (W(p->fn), W(p->userData)))
SET(hipGraphExecChildGraphNodeSetParams, AND void *child, W(child))
SET(hipGraphExecEventRecordNodeSetEvent, AND void *event, W(event))
SET(hipGraphExecEventWaitNodeSetEvent, AND void *event, W(event))
SET(hipGraphNodeSetEnabled, AND unsigned enabled, W(enabled))
CALL(hipDeviceGetGraphMemAttribute, (int device, int attribute, uint64_t *out), (W(device), W(attribute)), *out = 64 * (attribute + 1))
CALL(hipDeviceGraphMemTrim, (int device), W(device), (void)0)
CALL(hipImportExternalSemaphore, (void **out, const semaphore_desc *d), (W(d->type), W(d->handle.fd), W(d->flags)), *out = handle())
CALL(hipDestroyExternalSemaphore, (void *semaphore), W(semaphore), (void)0)
CALL(hipGraphGetNodes, (void *graph, void **nodes, size_t *count), W(graph), { if (nodes) nodes[0] = (void *)0x1000; *count = 1; })
CALL(hipGraphGetEdges, (void *graph, void **from, void **to, size_t *count), W(graph), { if (from) { from[0] = (void *)0x1000; to[0] = (void *)0x2000; } *count = 1; })

/* The same file stands for roctx, too. */
CALL(roctxRangePushA, (const char *name), say(" %s", name), (void)0)
CALL(roctxRangePop, (void), (void)0, (void)0)

int hipGetDevicePropertiesR0600(char *out, int device) {
    BEGIN; W(device);
    memset(out, 0, 1472);
    strcpy(out, "a library without a GPU");
    *(size_t *)(out + 288) = sizeof memory;
    *(int *)(out + 388) = 304;
    *(int *)(out + 688) = *(int *)(out + 744) = 1;
    strcpy(out + 1160, "gfx942:sramecc+:xnack-");
    END;
}

const char *hipGetErrorName(int code) {
    switch (code) {
        case 1: return "hipErrorInvalidValue";
        case 2: return "hipErrorOutOfMemory";
        case 100: return "hipErrorNoDevice";
        case 101: return "hipErrorInvalidDevice";
        case 400: return "hipErrorInvalidHandle";
        case 500: return "hipErrorNotFound";
        case 600: return "hipErrorNotReady";
        case 700: return "hipErrorIllegalAddress";
        case 702: return "hipErrorLaunchTimeOut";
        case 709: return "hipErrorContextIsDestroyed";
        case 719: return "hipErrorLaunchFailure";
        case 801: return "hipErrorNotSupported";
        case 910: return "hipErrorGraphExecUpdateFailure";
        default: return "hipErrorUnknown";
    }
}
