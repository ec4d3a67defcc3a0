/* Runs a saved simulation on the CPU, and writes its last picture: mpm88 FILE STEPS PICTURE.ppm */
#include "quadpy_graph.h"
#include <stdio.h>
#include <stdlib.h>

enum { WIDTH = 400, HEIGHT = 250 };
static float picture[HEIGHT][WIDTH][4]; /* colour times coverage, and coverage */

int main(int argc, char **argv) {
  static const float background[] = {16, 22, 34};
  const int64_t shape[] = {HEIGHT, WIDTH};
  char error[512];
  qpg_graph *graph = argc == 4 ? qpg_open(argv[1], "cpu", error, sizeof error) : NULL;
  if (!graph) return fprintf(stderr, "%s\n", argc == 4 ? error : "mpm88 FILE STEPS PICTURE.ppm"), 2;

  int failed = qpg_bind(graph, "picture", picture, shape, 2);
  for (int step = atoi(argv[2]); step > 0 && !failed; step--) failed = qpg_run(graph, NULL);
  if (failed) return fprintf(stderr, "%s\n", qpg_error(graph)), 1;

  FILE *file = fopen(argv[3], "wb");
  if (!file) return perror(argv[3]), 1;
  fprintf(file, "P6 %d %d 255\n", WIDTH, HEIGHT);
  for (int k = 0; k < WIDTH * HEIGHT; k++)
    for (int c = 0; c < 3; c++) {
      const float *pixel = picture[k / WIDTH][k % WIDTH], cover = pixel[3] < 1 ? pixel[3] : 1;
      putc((int)(background[c] + (pixel[c] / (pixel[3] > 1e-6f ? pixel[3] : 1e-6f) - background[c]) * cover), file);
    }
  qpg_close(graph);
  return fclose(file) ? 1 : 0;
}
