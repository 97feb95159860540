/*
 * execute_command.h - `offsim-cuda execute GRAPH.opg`: runs it and writes when each operation began and ended.
 */
#ifndef HW_CUDA_EXECUTE_COMMAND_H
#define HW_CUDA_EXECUTE_COMMAND_H

#include "hw/cuda/backend.h"

/* argv[0] is "execute". */
int execute_command(int argc, char **argv, std::unique_ptr<backend> (*open)());

#endif
