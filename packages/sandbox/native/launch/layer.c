#include "common.h"
int layer_main(int argc, char **argv) { (void)argc; (void)argv; usage("not yet"); }
