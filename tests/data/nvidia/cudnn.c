/* cuDNN 9.1.0 that says so; built with -DDIES it takes the process with it when it is loaded. */
#include <stdlib.h>

size_t cudnnGetVersion(void) { return 90100; }
#ifdef DIES
__attribute__((constructor)) static void die(void) { abort(); }
#endif
