/*
 * cmd_calibrate.c - `offsim calibrate`: the constants of a machine's profile.
 */
#include "sim/cmd/cmd.h"

int cmd_calibrate(int argc, char **argv)
{
	return cmd_calibrate_from(argc, argv);
}
