/* An NVML of a machine with two cards: an H100 with MIG and a thermal brake, and a vGPU of an A40.
   With FAKE_NVML=mismatch it fails as after an update of the driver; with hang it never answers;
   with crash it dies. With FAKE_NVML_HELD=FILE there is one H100 without MIG, and who holds it is
   read from the file at every question: its first line has the bytes in use and the compute mode,
   each other one a process and its bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { unsigned long long total, free, used; } Memory;
typedef struct { unsigned pid; unsigned long long used; unsigned gpu, compute; } Process;

static int as(const char *name) { const char *v = getenv("FAKE_NVML"); return v && !strcmp(v, name); }
static const char *held(void) { return getenv("FAKE_NVML_HELD"); }
static long index_of(void *device) { return (long)device - 1; }

int nvmlInit_v2(void) {
  if (as("hang")) sleep(60);
  if (as("crash")) abort();
  return as("mismatch") ? 18 : 0;
}
const char *nvmlErrorString(int code) { return code == 18 ? "Driver/library version mismatch" : "GPU is lost"; }
int nvmlSystemGetDriverVersion(char *out, unsigned n) { strncpy(out, "550.54.14", n); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *out) { *out = 12040; return 0; }
static unsigned long long first(int second) {
  unsigned long long used = 0, mode = 0;
  FILE *file = fopen(held(), "r");
  if (file) { if (fscanf(file, "%llu %llu", &used, &mode) < 1) used = 0; fclose(file); }
  return second ? mode : used;
}
int nvmlDeviceGetCount_v2(unsigned *out) { if (held()) { *out = 1; return 0; } *out = as("lost") ? 3 : 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **out) { if (i > 1) return 15; *out = (void *)(long)(i + 1); return 0; }
int nvmlDeviceGetName(void *d, char *out, unsigned n) { strncpy(out, index_of(d) ? "NVIDIA A40-8Q" : "NVIDIA H100 80GB HBM3", n); return 0; }
int nvmlDeviceGetUUID(void *d, char *out, unsigned n) { strncpy(out, index_of(d) ? "GPU-22222222-0000-0000-0000-000000000000" : "GPU-11111111-0000-0000-0000-000000000000", n); return 0; }
int nvmlDeviceGetMemoryInfo(void *d, Memory *out) { out->total = 85520809984ULL; out->used = held() ? first(0) : 1073741824ULL; out->free = out->total - out->used; return 0; }
int nvmlDeviceGetCudaComputeCapability(void *d, int *major, int *minor) { *major = index_of(d) ? 8 : 9; *minor = index_of(d) ? 6 : 0; return 0; }
int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *then) { if (index_of(d) || held()) return 3; *now = *then = 1; return 0; }
int nvmlDeviceGetComputeMode(void *d, unsigned *out) { *out = held() ? first(1) : 0; return 0; }
int nvmlDeviceGetVirtualizationMode(void *d, unsigned *out) { *out = index_of(d) ? 2 : 0; return 0; }
int nvmlDeviceGetTotalEccErrors(void *d, int kind, int counter, unsigned long long *out) { if (index_of(d)) return 3; *out = kind == 1 && counter == 0 ? 7 : 0; return 0; }
int nvmlDeviceGetCurrentClocksThrottleReasons(void *d, unsigned long long *out) { *out = index_of(d) ? 0x1 : 0x44; return 0; }
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, Process *out) {
  if (index_of(d)) { *n = 0; return 0; }
  if (held()) {
    unsigned count = 0, room = out ? *n : 0, pid; unsigned long long used; char line[200];
    FILE *file = fopen(held(), "r");
    while (file && fgets(line, sizeof line, file))
      if (count++ && sscanf(line, "%u %llu", &pid, &used) == 2 && out && count - 2 < room) {
        out[count - 2].pid = pid; out[count - 2].used = used;
        out[count - 2].gpu = out[count - 2].compute = 0xFFFFFFFF;
      }
    if (file) fclose(file);
    *n = count ? count - 1 : 0;
    return *n && !out ? 7 : 0;
  }
  if (!out) { *n = 2; return 7; }
  *n = 2;
  out[0].pid = getpid(); out[0].used = 1073741824ULL;
  out[1].pid = 4194303; out[1].used = (unsigned long long)-1;
  return 0;
}
typedef struct { unsigned gpu, memory; } Utilisation;
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetUtilizationRates(void *d, Utilisation *out) { if (index_of(d)) return 3; out->gpu = 97; out->memory = 41; return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *out) { *out = 612345; return 0; }
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *out) { *out = 700000; return 0; }
int nvmlDeviceGetTemperature(void *d, int sensor, unsigned *out) { *out = sensor ? 0 : 71; return 0; }
int nvmlDeviceGetClockInfo(void *d, int kind, unsigned *out) { *out = kind == 0 ? 1755 : kind == 2 ? 2619 : 0; return 0; }
int nvmlDeviceGetMaxClockInfo(void *d, int kind, unsigned *out) { *out = kind == 0 ? 1980 : 2619; return 0; }
int nvmlDeviceGetEccMode(void *d, unsigned *now, unsigned *then) { *now = !index_of(d); *then = 1; return 0; }
int nvmlInitWithFlags(unsigned flags) { return flags ? 2 : nvmlInit_v2(); }
