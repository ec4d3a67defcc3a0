/* The same library as CUDA's driver: the calls that saved graphs use have the same arguments. */
#define LAST 0
#define hipModuleLoadData cuModuleLoadData
#define hipModuleGetFunction cuModuleGetFunction
#define hipModuleUnload cuModuleUnload
#define hipMalloc cuMemAlloc_v2
#define hipFree cuMemFree_v2
#define hipMemcpyHtoD cuMemcpyHtoD_v2
#define hipMemcpyDtoHAsync cuMemcpyDtoHAsync_v2
#define hipMemcpyDtoDAsync cuMemcpyDtoDAsync_v2
#define hipMemsetD8Async cuMemsetD8Async
#define hipMemsetD16Async cuMemsetD16Async
#define hipMemsetD32Async cuMemsetD32Async
#define hipModuleLaunchKernel cuLaunchKernel
#define hipModuleLaunchCooperativeKernel cuLaunchCooperativeKernel
#define hipStreamSynchronize cuStreamSynchronize
#define hipStreamIsCapturing cuStreamIsCapturing
#define hipModuleOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxActiveBlocksPerMultiprocessor
#define hipDeviceGetAttribute hip_attribute
#define hipStreamDestroy cuStreamDestroy_v2
#define hipGraphInstantiateWithFlags cuGraphInstantiateWithFlags
#define hipGraphLaunch cuGraphLaunch
#define hipGraphExecDestroy cuGraphExecDestroy
#define hipGraphDestroy cuGraphDestroy
#include "hip_library.c"

static void *context;

CALL(cuInit, (unsigned flags), W(flags), (void)0)
CALL(cuCtxGetCurrent, (void **out), (void)0, *out = context)
CALL(cuDevicePrimaryCtxRetain, (void **out, int device), W(device), *out = (void *)0x700)
CALL(cuCtxSetCurrent, (void *chosen), W(chosen), context = chosen)
CALL(cuCtxGetDevice, (int *out), (void)0, *out = 0)
CALL(cuDeviceGetAttribute, (int *out, int attribute, int device), (W(attribute), W(device)), *out = attribute == 75 ? 9 : attribute == 76 ? 0 : 132)
CALL(cuStreamCreate, (void **out, unsigned flags), W(flags), *out = handle())
CALL(cuStreamBeginCapture_v2, (void *stream, int mode), (W(stream), W(mode)), (void)0)
CALL(cuStreamEndCapture, (void *stream, void **out), W(stream), *out = handle())
