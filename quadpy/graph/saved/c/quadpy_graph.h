/* Runs saved graphs of quadpy (step.qpg) in C or C++, without Python and without a compiler.
 *
 * Build quadpy_graph.c with the program, for Linux, and link with -ldl -lm -lpthread.  On a GPU the reader opens the driver's
 * library itself (libamdhip64 or libcuda), and uses the thread's current device.
 *
 * A graph is used by one thread at a time.  On a GPU, runs of one graph on several streams may not overlap: its memory is
 * the same in each.  The file is code: open only files that you trust.
 */
#ifndef QUADPY_GRAPH_H
#define QUADPY_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QPG_MAX_RANK 32

typedef struct qpg_graph qpg_graph;

typedef struct {
  const char *name;
  const char *type;            /* of a scalar, such as "f32", or of a struct */
  const char *memory;          /* "bound": the caller's; "internal", "constant": the graph's */
  const char *access;          /* "r", "w" or "rw" */
  size_t item;                 /* bytes of an element */
  int rank;
  int64_t shape[QPG_MAX_RANK]; /* elements; -1 for what a caller may choose and has not */
  void *pointer;               /* in the memory of the target; NULL for what is not bound yet */
} qpg_array;

/* Opens a saved graph.
 *
 * target: such as "gfx942", "sm_90", "x86-64", "arm64"; "cpu" for the best of this processor; NULL for the best that runs here,
 * a GPU first.  NULL is returned for a file that is damaged or has no code for the target; error then says why.
 */
qpg_graph *qpg_open(const char *path, const char *target, char *error, size_t error_size);
/* The same for the bytes of a file, which are not needed afterwards. */
qpg_graph *qpg_open_memory(const void *bytes, size_t size, const char *target, char *error, size_t error_size);

/* The target that was chosen. */
const char *qpg_target(const qpg_graph *graph);
int qpg_array_count(const qpg_graph *graph);
/* Array k; 0, or -1 if there is none. */
int qpg_array_info(const qpg_graph *graph, int k, qpg_array *out);

/* Binds memory to an array: an address on the target's device, and the elements along each axis, in C order.  It stays bound,
 * and the memory must exist, until another is.  0, or -1 with qpg_error. */
int qpg_bind(qpg_graph *graph, const char *name, void *pointer, const int64_t *shape, int rank);

/* Runs the graph: on a GPU on stream (a hipStream_t or CUstream), on the CPU before it returns.  0, or -1 with qpg_error.
 * Loops that depend on memory are inside a launch; where the device cannot have that, the call waits for the stream. */
int qpg_run(qpg_graph *graph, void *stream);

/* On the CPU, how many threads a loop may use; 0 for as many as the process has CPUs. */
void qpg_set_threads(qpg_graph *graph, int threads);

/* What the last call that failed says. */
const char *qpg_error(const qpg_graph *graph);

/* Frees the graph and its memory; on a GPU its runs must have ended.  NULL is permitted. */
void qpg_close(qpg_graph *graph);

#ifdef __cplusplus
}
#endif
#endif
