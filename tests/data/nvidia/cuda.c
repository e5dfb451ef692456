/* A driver library for CUDA 12.4 with one card; with FAKE_CUDA=unknown cuInit fails. */
#include <stdlib.h>
#include <string.h>

static int as(const char *name) { const char *v = getenv("FAKE_CUDA"); return v && !strcmp(v, name); }

int cuDriverGetVersion(int *out) { *out = 12040; return 0; }
int cuInit(unsigned flags) {
  if (getenv("CUDA_VISIBLE_DEVICES")) return 100;
  return as("unknown") ? 999 : 0;
}
int cuGetErrorName(int code, const char **out) { *out = code == 100 ? "CUDA_ERROR_NO_DEVICE" : "CUDA_ERROR_UNKNOWN"; return 0; }
int cuDeviceGetCount(int *out) { *out = 1; return 0; }
int cuDeviceGet(int *out, int i) { *out = i; return 0; }
int cuDeviceGetName(char *out, int n, int d) { strncpy(out, "Orin", n); return 0; }
int cuDeviceTotalMem_v2(size_t *out, int d) { *out = 8000000000ULL; return 0; }
int cuDeviceGetAttribute(int *out, int what, int d) { *out = what == 75 ? 8 : 7; return 0; }
